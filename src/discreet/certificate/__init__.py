"""Release certificates: what a release promises, for people who do not have the ledger.

certificate.py  Certificate; making one, and checking one against a ledger or an export
statement.py    what a certificate says: a function of the entries it speaks about
export.py       reading what `discreet ledger export` writes
"""

from discreet.certificate.certificate import Certificate, certificate, check
from discreet.certificate.export import read_export
from discreet.certificate.statement import Evidence

__all__ = ["Certificate", "Evidence", "certificate", "check", "read_export"]
