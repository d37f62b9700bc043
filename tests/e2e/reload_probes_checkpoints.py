"""Probes of the keys about sessions that are suspended."""
import server
from reload_cases import probe, start


def admin(case, *words):
    """As this host's user at the control socket."""
    return case.longwire.cli("admin", *map(str, words))


def suspend(case, name):
    start(case, "alpha")
    [session] = case.status()["sessions"]
    done = admin(case, "checkpoint", session["id"], name)
    case.assertEqual(0, done.code, (done, case.longwire.log_tail()))


@probe("checkpoint_key")
def encrypt(case):
    key = case.longwire.runtime / "checkpoint.key"
    key.write_text("7c" * 32)
    key.chmod(0o600)
    case.longwire.reload(checkpoint_key=str(key))
    suspend(case, "sealed")
    case.longwire.reload()
    case.assertIn("the file is encrypted", admin(case, "restore", "sealed").err)
    case.longwire.reload(checkpoint_key=str(key))
    case.assertEqual(0, admin(case, "restore", "sealed").code, case.longwire.log_tail())


@probe("checkpoint_grace")
def wait_for_a_restore(case):
    """Of sessions that are suspended already, too."""
    suspend(case, "late")
    case.assertEqual(1, len(case.status()["suspended"]))
    case.longwire.reload(checkpoint_grace="1s")
    server.wait_for(lambda: not case.status().get("suspended"), 20, "the end of the session")


def suspended_by_itself(case):
    """What a program gets that wants to be suspended, with what the configuration says now."""
    process = start(case, "alpha", "driver_own_checkpoint.driver")
    out, err = process.communicate("lock\ncheckpoint\nrestore\nunlock\n", timeout=60)
    case.assertEqual(0, process.returncode, (out, err, case.longwire.log_tail()))
    return out.splitlines()[1], err


@probe("checkpoint_own_sessions")
def allow_programs(case):
    case.assertIn("checkpoint_own_sessions", suspended_by_itself(case)[1])
    case.longwire.reload(checkpoint_own_sessions="1")
    case.assertEqual(("0 2", ""), suspended_by_itself(case))


@probe("checkpoint_own_bytes")
def limit_their_bytes(case):
    case.longwire.reload(checkpoint_own_sessions="1", checkpoint_own_bytes="2MiB")
    said, err = suspended_by_itself(case)
    case.assertEqual("801 1", said)
    case.assertIn("checkpoint_own_bytes", err)
