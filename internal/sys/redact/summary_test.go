package redact

import (
	"crypto/sha512"
	"encoding/base64"
	"strings"
	"testing"
)

func TestSummariesLeaveOrdinaryText(t *testing.T) {
	sum := sha512.Sum512([]byte("x"))
	for _, s := range []string{
		"", "1.2.3", "v0.0.0-20240613195827-1b1e0b7a5f3c+incompatible",
		"omniagent/1.2.3-rc.1+build.20260101.sha.5114f85",
		"ip-10-0-13-37.eu-central-1.compute.internal.example.com", "a1b2c3d4e5f6g7.cloudfront.net",
		"registry.packages.example",
		"/home/user/go/pkg/mod/github.com/BurntSushi/toml@v1.3.2/internal/tz.go",
		"/usr/lib/x86_64-linux-gnu/libQt5Core.so.5.15.3",
		"/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/TestFoo123Bar456/001/File.txt",
		"src/components/Foo2Bar/BazQux3/Index1/Types9/AbC.tsx",
		`C:\Users\Bob\AppData\Local\Packages\Foo_8wekyb3d8bbweAbCdEf12345678901234\x`,
		"~/AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8YzA9bCd0",
		"https://docs.google.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit",
		"see https://h.example/AbC1dEf2GhI3jKl4MnO5pQr6StU7vWx8YzA9bCd0?x=1, please",
		"da39a3ee5e6b4b0d3255bfef95601890afd80709", "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"sha512-" + base64.StdEncoding.EncodeToString(sum[:]), "h1:" + base64.StdEncoding.EncodeToString(sum[:32]),
		"SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:32]), "pkg@sha256-" +
			base64.StdEncoding.EncodeToString(sum[:32]),
		"550e8400-e29b-41d4-a716-446655440000",
		"550E8400-E29B-41D4-A716-446655440000_550E8400-E29B-41D4-A716-446655440000",
		"01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV-01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"c1." + base64.RawURLEncoding.EncodeToString(sum[:60]), `{"cursor":"c1.` +
			base64.RawURLEncoding.EncodeToString(sum[:60]) + `"}`,
		"The quick brown fox jumps over the lazy dog, and then some more of the same.", strings.Repeat("a",
			80), strings.Repeat("aB3", 40),
		"AbstractSingletonProxyFactoryBeanConfigurationManagerV2Impl",
		"getUserByEmailAddressOrPhoneNumberAndTenantIdV2IfPresent",
		"TestHTTP2ServerUpgradesTLSv13ConnectionWithX509CertificateAndIPv6Address",
		"CLAUDE_CODE_SUBAGENT_MODEL_OVERRIDE_FOR_2026_TESTS",
		"some-Long-Kebab-Case-Name-With-123-Numbers-And-Words-4-You", "toolu_01A09q90qw90lq917835lq9",
		"msg_01XFDUDYJgAACzvnptvVoYEL",
		"call_abc123DEF456ghi789JKL012", "wJalrXUtnFEMI", "eyJhb.eyJz.abc", strings.Repeat("=", 60), strings.Repeat("-",
			60), strings.Repeat("/", 60),
		"github.com/AlecAivazis/survey/v2/core/Renderer2/QuestionTemplate/Foo1",
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/",
	} {
		if masked, found := Summaries(s); found || masked != s {
			t.Errorf("%q becomes %q", s, masked)
		}
	}
}

func TestSummaries(t *testing.T) {
	for _, c := range [][2]string{
		{jwtText, "[JWT: sub=1234567890, exp=2023-11-14T22:13:20Z]"},
		{"a " + jwtText + ".", "a [JWT: sub=1234567890, exp=2023-11-14T22:13:20Z]."},
		{"eyJhbGciOiJub25lIn0.e30.c2ln", "[JWT: sub=?, exp=?]"},
		{token36, "[KEY: ghp_16C7...]"},
		{"use " + token36 + " now", "use [KEY: ghp_16C7...] now"},
		{pemText, "[KEY: PEM private key]"},
		{token36 + " " + token36, "[KEY: ghp_16C7...] [KEY: ghp_16C7...]"},
	} {
		masked, found := Summaries(c[0])
		if masked != c[1] || found != (c[0] != c[1]) {
			t.Errorf("%q\n  got %q, %v\n want %q", c[0], masked, found, c[1])
		}
		if again, found := Summaries(masked); found {
			t.Errorf("again: %q becomes %q", masked, again)
		}
	}
}

func FuzzSummaries(f *testing.F) {
	f.Add(clean)
	f.Add(jwtText + " " + token36 + "")
	f.Fuzz(func(t *testing.T, s string) {
		once, found := Summaries(s)
		if !found && once != s {
			t.Errorf("%q changed to %q unsaid", s, once)
		}
		if twice, again := Summaries(once); again {
			t.Errorf("%q\n once %q\ntwice %q", s, once, twice)
		}
		for _, secret := range []string{token36, jwtText} {
			if out, _ := Summaries(s + " " + secret + " " + s); strings.Contains(out, secret) &&
				!strings.Contains(s, secret) {
				t.Errorf("%q", out)
			}
		}
	})
}
