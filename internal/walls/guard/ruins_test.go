package guard

import (
	"strings"
	"testing"
)

// judged is the verdict on a line in a place where walls contain everything and a snapshot takes it back.
func judged(line string) Verdict {
	p := here()
	p.Containment = Containment{Walls: true, Network: true, Cover: Cover{Roots: []string{p.Root}}}
	allow, err := known().Rule(Allow, "Bash", "a test")
	if err != nil {
		panic(err)
	}
	return Judge{Set: Tools, Rules: Rules{allow}, Place: p}.Call(Call{Tool: "Bash", Kind: "command", Command: line})
}

// TestWhatRuinsTheMachineNeverRuns: neither walls nor a rule that allows everything let it run.
func TestWhatRuinsTheMachineNeverRuns(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(`rm -rf /
rm -fr //
rm -r -f /
rm -RF /
RM -RF /
\rm -rf /
'rm' -rf "/"
/bin/rm -rf /
/usr/bin/rm --recursive --force /
rm --recurs --forc --no-preserve-root /
rm -rf -- /
rm -rf /*
rm -rf /.*
rm -rf /./../
rm -rf /[a-z]*
rm -rf / tmp/x
rm -rf ~
rm -rf ~/
rm -rf ~/*
rm -rf "$HOME"
rm -rf ${HOME}/*
rm -rf /usr /tmp/x
rm -rf /etc/*
rm -rf ..
rm -rf ../../*
x=/; rm -rf $x
cd / && rm -rf *
cd /; rm -rf .
cd ~ && rm -rf ./*
command rm -rf /
env A=b rm -rf /
nice -n 5 timeout 9 rm -rf /
busybox rm -rf /
bash -c 'rm -rf /'
sh -c "cd /tmp; bash -c 'rm -rf /'"
eval 'rm -rf /'
echo / | xargs rm -rf
true && (rm -rf /)
for i in 1; do rm -rf /; done
if true; then rm -rf /; fi
f() { rm -rf /; }; f
rm -rf build; rm -rf / &
find / -delete
find / -exec rm -rf {} +
chmod -R 777 /
chown -R me:me /etc
shutdown now
shutdown -h now
sudo shutdown -h now
/sbin/shutdown
SHUTDOWN -r +1
reboot
reboot -f
halt
poweroff
init 0
telinit 6
systemctl reboot
systemctl --no-wall poweroff
loginctl poweroff
bash -c "reboot"
nohup shutdown now &
mkfs.ext4 /dev/sda1
mkfs -t ext4 /dev/sda1
/sbin/mkfs.xfs -f /dev/nvme0n1
dd if=/dev/zero of=/dev/sda
dd of=/dev/disk/by-id/x if=image bs=1M
echo x > /dev/sda
cat image >> /dev/nvme0n1
cat image | tee /dev/sdb
cp image /dev/sdb
cd /dev && echo x > sda
shred -n 1 /dev/sda
wipefs -a /dev/sda
mkswap /dev/sda2
blkdiscard /dev/sda
echo b > /proc/sysrq-trigger
:(){ :|:& };:
bomb() { bomb | bomb & }; bomb
f(){ f & f; };f
f() { f& f& }; f
f() { (f &); f; }; f
f() { { f & }; echo x; f; }; f
f() ( f | cat | f ); f
`) {
		line = strings.TrimSuffix(line, "\n")
		if v := judged(line); v.Decision != Deny || !strings.Contains(v.Reasons[0].Text, "no mode allows") {
			t.Errorf("%q: %s %+v", line, v.Decision, v.Reasons)
		}
	}
}

// TestWhatIsLikeItRuns: names and words that resemble those above.
func TestWhatIsLikeItRuns(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(`rm -rf build
f() { f; f; }; f
f() { [ "$1" = 0 ] && return; f 0 & f 0; }; f 2
f() { if [ "$1" != 0 ]; then f 0 & f 0; fi; }; f 2
f() { [ "$1" = 0 ] || { f 0 & f 0; }; }; f 2
f() { f & }; f
rm -rf ./*
rm -rf *
rm -rf .
rm -rf /tmp/x
rm -rf /tmp/*
rm -rf /w/ws/build
rm -rf ~/.cache/tool
rm -rf /usr/local/lib/x
rm -rf "$DIR"/*
rm -rf "/$x"
rm /etc/hosts
rm -f /
find / -name '*.h'
find . -delete
find . -name x -exec rm -rf {} +
find /usr -exec grep -l rm {} +
echo rm -rf /
echo reboot
echo rebooting
echo 'shutdown now'
grep -r shutdown .
grep -rn "rm -rf /" .
git commit -m 'handle shutdown, reboot and rm -rf /'
cat shutdown.md
./shutdown.test
python shutdown
man mkfs
mkfs --help
systemctl status reboot.service
systemctl list-units
dd if=/dev/zero of=image bs=1M count=1
fdisk -l /dev/sda
echo x > /dev/null
echo x > /dev/stderr
echo x | tee /dev/tty
cat x > /dev/fd/3
echo x > dev/sda
chmod -R u+w .
chmod -R a+r ~/x
f() { g | h; }; f
fib() { echo $(( $(fib $(($1-1))) + $(fib $(($1-2))) )); }
`) {
		line = strings.TrimSuffix(line, "\n")
		for _, r := range judged(line).Reasons {
			if strings.Contains(r.Text, "no mode allows") {
				t.Errorf("%q: %s", line, r.Text)
			}
		}
	}
}
