"""A Slurm of our own on this machine, for bench/slurm_preemption and bench/slurm_shrink: as root, with slurm-wlm and munge
(apt-get install slurm-wlm munge). It has as many nodes as asked for, each a slurmd with a name and a port of its own."""
import os, pathlib, shutil, socket, subprocess, sys, tempfile, time


def say(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout.strip()


def wait(condition, what, seconds=120):
    until = time.time() + seconds
    while not condition():
        if time.time() > until:
            sys.exit(f"{what}: not within {seconds} s\n" + say("squeue") + "\n" + say("sinfo"))
        time.sleep(0.2)


class Slurm:
    """with Slurm(nodes=1, partitions="...") as at: the folder in which it lives. Ends it, and removes the folder if all went well."""

    def __init__(self, partitions, nodes=1, more=""):
        for program in ("slurmctld", "slurmd", "munged", "sbatch"):
            if not shutil.which(program) and not os.path.exists(f"/usr/sbin/{program}"):
                sys.exit(f"{program} is not installed: apt-get install slurm-wlm munge")
        self.at = at = pathlib.Path(tempfile.mkdtemp(prefix="slurm-"))
        host = socket.gethostname()
        if nodes == 1:
            names = [host]
            described = say("/usr/sbin/slurmd", "-C").splitlines()[0].split("RealMemory")[0] + " NodeAddr=127.0.0.1 State=UNKNOWN"
        else:
            names = [f"n{i + 1}" for i in range(nodes)]
            described = "\n".join(f"NodeName={n} NodeHostname={host} NodeAddr=127.0.0.1 Port={16818 + i} CPUs=1 State=UNKNOWN" for i, n in enumerate(names))
        self.names = names
        self.conf = at / "slurm.conf"
        self.conf.write_text(f"""ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
SlurmUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool-%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd-%n.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd-%n.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=5
SlurmdParameters=config_overrides
{more}
{described}
""" + "\n".join(line.format(nodes=",".join(names)) for line in partitions) + "\n")
        (at / "state").mkdir()
        self.services = []

    def __enter__(self):
        at = self.at
        os.environ["SLURM_CONF"] = str(self.conf)
        key = at / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        try:
            self.start("/usr/sbin/munged", "-F", "-f", f"--key-file={key}", f"--socket={at}/munge.socket", f"--pid-file={at}/munged.pid", f"--log-file={at}/munged.log", f"--seed-file={at}/munged.seed")
            wait(lambda: (at / "munge.socket").exists(), "munged answers", 20)
            self.start("/usr/sbin/slurmctld", "-D", "-f", str(self.conf))
            for name in self.names:
                (at / f"spool-{name}").mkdir()
                self.start("/usr/sbin/slurmd", "-D", "-f", str(self.conf), "-N", name)
            ready = lambda: subprocess.run(["sinfo", "-h", "-N", "-o", "%N %t"], capture_output=True, text=True).stdout.split("\n")
            wait(lambda: {line.split()[0] for line in ready() if line.endswith(" idle")} == set(self.names), "the nodes are idle", 60)
        except BaseException:
            self.stop()
            raise
        return at

    def start(self, *words):
        self.services.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def stop(self):
        for service in reversed(self.services):
            service.terminate()
            service.wait()

    def __exit__(self, problem, *_):
        self.stop()
        if not problem:
            shutil.rmtree(self.at, ignore_errors=True)
