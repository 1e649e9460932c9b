"""`python -m course.doctor.probe NAME FULL`: one check in a process of its own; the last line printed is its finding.

`needs` as a name prints what each day needs instead. Whatever a check raises becomes a finding too.
"""

import importlib
import json
import sys

from course.doctor.finding import Finding


def main(name: str, full: str) -> None:
    """Run the check `name`; `full` is "1" where it may take minutes."""
    if name == "needs":
        from course.doctor.needs import weeks

        print("\n" + json.dumps({"weeks": weeks()}))
        return
    finding: Finding = importlib.import_module(f"course.doctor.probes.{name}").probe(full == "1")
    print("\n" + json.dumps(finding.plain()))


if __name__ == "__main__":
    main(*sys.argv[1:])
