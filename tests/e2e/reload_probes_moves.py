"""Probes of the keys about sessions that move between servers."""
from reload_cases import probe, start


@probe("moves_from")
def take_sessions(case):
    """This server is known to itself by its certificate, as another one would be. It takes no
    session of its own, but says so only to servers whose sessions it takes."""
    start(case, "alpha")
    [session] = case.status()["sessions"]

    def move():
        return case.longwire.cli("admin", "migrate", str(session["id"]), case.longwire.address)
    refused = move()
    case.assertIn("takes no sessions from", refused.err)
    name = refused.err.split("takes no sessions from '")[1].split("'")[0]
    case.longwire.reload(moves_from=[name])
    case.assertIn("that is the server itself", move().err, case.longwire.log_tail())
