"""The group unbroken of tests/gpu/run: PyTorch trains while its link, the daemon and the keeper are
killed; its losses and parameters are those of a training that nothing disturbs."""
import os
import signal
import subprocess
import time

import frameworks
import server

TRAININGS = ("torch_training.cnn.fp32", "torch_training.transformer.bf16")
SECONDS = 120


def kill(longwire, name):
    pids = longwire.processes()[name]
    if not pids:
        raise AssertionError(f"{name} does not run")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def kill_link(longwire):
    kill(longwire, "longwire-link")


def kill_keeper(longwire):
    kill(longwire, "longwire-keeper")


def restart_daemon(longwire):
    daemon = longwire.children.pop("longwired")
    daemon.kill()
    daemon.wait()
    longwire.start_daemon()


def stop_daemon(longwire):
    """As systemd restarts it: SIGTERM, then the next one."""
    longwire.end_daemon()
    longwire.start_daemon()


DISTURBANCES = {
    "nothing": (),
    "the link is killed": (kill_link,),
    "the keeper is killed": (kill_keeper,),
    "the daemon is killed": (restart_daemon,),
    "the daemon is restarted": (stop_daemon,),
    "all of them, one after the other": (kill_link, restart_daemon, kill_keeper, stop_daemon,
                                         kill_link),
}


def train(longwire, label, disturbances):
    """What the training prints, and how long the pauses of its steps' output were."""
    training = next(f for f in frameworks.FRAMEWORKS if f.label == label)
    process = subprocess.Popen(
        longwire.command(*frameworks.command(training)),
        env=longwire.environment(**frameworks.environment(training), PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = time.monotonic()
    first = server.next_line(process)  # twenty steps are done, 480 are to come
    for disturb in disturbances:
        disturb(longwire)
        time.sleep(0.3)
    ended_early = bool(disturbances) and process.poll() is not None
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    result = server.Result(process.returncode, first + out, err, time.monotonic() - begun)
    wrong = frameworks.what_is_wrong(training, result)
    return result, wrong or ("it ended before it was disturbed" if ended_early else None)


def run(build, report):
    """True if each training is the same whatever happens."""
    good = True
    for label in TRAININGS:
        undisturbed = None
        with server.Server(driver="auto", build=build) as longwire:
            for name, disturbances in DISTURBANCES.items():
                result, wrong = train(longwire, label, disturbances)
                undisturbed = undisturbed or result
                if wrong is None and result.out != undisturbed.out:
                    wrong = "it printed other losses or parameters"
                report.keep(label, name, result)
                report.row(f"{label:36} {name:36} {result.seconds:6.2f} s  "
                           f"{'BAD ' + wrong if wrong else 'the same'}")
                good = good and wrong is None
            report.row(longwire.log_tail(60) if not good else "")
    return good
