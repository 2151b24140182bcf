package schema

// refusedGroups returns the groups of the official suite that Parse refuses, with words of the reason. They need
// documents that are fetched or known beforehand, the schemas of schemas among them, or a dialect with vocabularies of
// its own.
//
// Long because it is a list.
func refusedGroups() map[string]string {
	const remote, dialect = "leads nowhere within this document", "is neither draft 2020-12 nor draft-07"
	const unknown, control = remote, "invalid escape sequence"
	return map[string]string{
		`draft2020-12/optional/refOfUnknownKeyword: reference of a root arbitrary keyword `:                             unknown,
		`draft2020-12/optional/refOfUnknownKeyword: reference of a root arbitrary keyword with encoded ref`:             unknown,
		`draft2020-12/optional/refOfUnknownKeyword: reference of an arbitrary keyword of a sub-schema`:                  unknown,
		`draft2020-12/optional/refOfUnknownKeyword: reference internals of known non-applicator`:                        unknown,
		`draft2020-12/optional/refOfUnknownKeyword: reference of an arbitrary keyword of a sub-schema with encoded ref`: unknown,
		`draft2020-12/optional/ecmascript-regex: ECMA 262 regex escapes control codes with \c and upper letter`:         control,
		`draft2020-12/optional/ecmascript-regex: ECMA 262 regex escapes control codes with \c and lower letter`:         control,
		`draft7/optional/ecmascript-regex: ECMA 262 regex escapes control codes with \c and upper letter`:               control,
		`draft7/optional/ecmascript-regex: ECMA 262 regex escapes control codes with \c and lower letter`:               control,
		`draft2020-12/defs: validate definition against metaschema`:                                                     remote,
		`draft2020-12/dynamicRef: strict-tree schema, guards against misspelled properties`:                             remote,
		`draft2020-12/dynamicRef: tests for implementation dynamic anchor and reference link`:                           remote,
		`draft2020-12/dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first`:                       remote,
		`draft2020-12/dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first`:                        remote,
		`draft2020-12/dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor`:                                    remote,
		`draft2020-12/ref: remote ref, containing refs itself`:                                                          remote,
		`draft2020-12/refRemote: remote ref`:                                                                            remote,
		`draft2020-12/refRemote: fragment within remote ref`:                                                            remote,
		`draft2020-12/refRemote: anchor within remote ref`:                                                              remote,
		`draft2020-12/refRemote: ref within remote ref`:                                                                 remote,
		`draft2020-12/refRemote: base URI change`:                                                                       remote,
		`draft2020-12/refRemote: base URI change - change folder`:                                                       remote,
		`draft2020-12/refRemote: base URI change - change folder in subschema`:                                          remote,
		`draft2020-12/refRemote: root ref in remote ref`:                                                                remote,
		`draft2020-12/refRemote: remote ref with ref to defs`:                                                           remote,
		`draft2020-12/refRemote: Location-independent identifier in remote ref`:                                         remote,
		`draft2020-12/refRemote: retrieved nested refs resolve relative to their URI not $id`:                           remote,
		`draft2020-12/refRemote: remote HTTP ref with different $id`:                                                    remote,
		`draft2020-12/refRemote: remote HTTP ref with different URN $id`:                                                remote,
		`draft2020-12/refRemote: remote HTTP ref with nested absolute ref`:                                              remote,
		`draft2020-12/refRemote: $ref to $ref finds detached $anchor`:                                                   remote,
		`draft2020-12/vocabulary: schema that uses custom metaschema with with no validation vocabulary`:                dialect,
		`draft2020-12/vocabulary: ignore unrecognized optional vocabulary`:                                              dialect,
		`draft7/definitions: validate definition against metaschema`:                                                    remote,
		`draft7/ref: remote ref, containing refs itself`:                                                                remote,
		`draft7/refRemote: remote ref`:                                                                                  remote,
		`draft7/refRemote: fragment within remote ref`:                                                                  remote,
		`draft7/refRemote: ref within remote ref`:                                                                       remote,
		`draft7/refRemote: base URI change`:                                                                             remote,
		`draft7/refRemote: base URI change - change folder`:                                                             remote,
		`draft7/refRemote: base URI change - change folder in subschema`:                                                remote,
		`draft7/refRemote: root ref in remote ref`:                                                                      remote,
		`draft7/refRemote: remote ref with ref to definitions`:                                                          remote,
		`draft7/refRemote: Location-independent identifier in remote ref`:                                               remote,
		`draft7/refRemote: retrieved nested refs resolve relative to their URI not $id`:                                 remote,
		`draft7/refRemote: $ref to $ref finds location-independent $id`:                                                 remote,
		`draft2020-12/optional/cross-draft: refs to historic drafts are processed as historic drafts`:                   remote,
		`draft7/optional/cross-draft: refs to future drafts are processed as future drafts`:                             remote,
	}
}
