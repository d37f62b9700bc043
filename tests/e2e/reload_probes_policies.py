"""The probes of the keys of policies."""
import json

import server
from reload_cases import probe

OBJECTS = server.build_folder() / "policy" / "objects"


def names(case):
    told = case.longwire.cli("policy", "list", "--json")
    return {one["name"]: one["hooks"] for one in json.loads(told.out)}


@probe("policies.name", "policies.file")
def change_policies(case):
    case.assertEqual({}, names(case))
    for name, file, hook in (("one", "strict_priority", "device_changed"),
                             ("two", "roomiest", "place")):
        case.longwire.reload(policies=[{"name": name, "file": str(OBJECTS / f"{file}.o")}])
        case.assertEqual([name], list(names(case)))
        case.assertEqual([hook], names(case)[name])
    case.longwire.reload()
    case.assertEqual({}, names(case))
