"""Does a domain keep what searches and networks rely on? For the tests of one's own domain."""

from vbsix.testing.check import check_domain as check_domain
