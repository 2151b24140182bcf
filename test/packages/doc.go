// Package packages holds tests only: what scripts/packages has built is installed here as people install it, into empty
// directories, and run from there.
//
// OMNIAGENT_TEST_PACKAGES names the directory that the script has filled; without it nothing runs, and says so. So it
// is for programs that are not installed here: npm, dpkg, lintian, ruby.
package packages
