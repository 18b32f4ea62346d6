"""What a container may take, as Linux writes it: in one tree (cgroups 2), or in one per controller (cgroups 1)."""

import pytest

from keras_transformer.ground import container
from keras_transformer.ground.container import core_limit, memory_left, memory_limit


@pytest.fixture
def write(tmp_path, monkeypatch):
    """A function that writes files of the control groups by their paths; /proc/self/cgroup is "own"."""
    monkeypatch.setattr(container, "ROOT", tmp_path / "cgroup")
    monkeypatch.setattr(container, "OWN_GROUPS", tmp_path / "own")

    def write_files(own="", **files):
        (tmp_path / "own").write_text(own)
        for name, content in files.items():
            path = tmp_path / "cgroup" / name.replace("__", "/").replace("DOT", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{content}\n")

    return write_files


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", None), ("150000 100000", 2), ("20000 100000", 1), ("800000 100000", 8)]
)
def test_the_cores_of_cgroups_2_are_quota_over_period_rounded_up(write, quota, expected):
    write(cpuDOTmax=quota)
    assert core_limit() == expected


@pytest.mark.parametrize(("quota", "expected"), [("-1", None), ("150000", 2), ("20000", 1)])
def test_the_cores_of_cgroups_1_are_in_two_files(write, quota, expected):
    write(cpu__cpuDOTcfs_quota_us=quota, cpu__cpuDOTcfs_period_us="100000")
    assert core_limit() == expected


def test_without_files_there_is_no_limit(write):
    write()
    assert (core_limit(), memory_limit(), memory_left()) == (None, None, None)


@pytest.mark.parametrize(
    ("limit", "expected"), [("1000", (1000, 350)), ("max", (None, None)), ("100", (100, 0)), ("", (None, None))]
)
def test_cached_files_of_cgroups_2_are_not_used_memory(write, limit, expected):
    write(memoryDOTmax=limit, memoryDOTcurrent="700", memoryDOTstat="anon 640\ninactive_file 50")
    assert (memory_limit(), memory_left()) == expected


@pytest.mark.parametrize(("limit", "expected"), [("1000", (1000, 360)), (str(2**63 - 4096), (None, None))])
def test_cgroups_1_counts_cached_files_with_those_of_groups_below(write, limit, expected):
    write(
        memory__memoryDOTlimit_in_bytes=limit,
        memory__memoryDOTusage_in_bytes="700",
        memory__memoryDOTstat="inactive_file 1\ntotal_inactive_file 60",
    )
    assert (memory_limit(), memory_left()) == expected


def test_the_tightest_group_above_the_own_one_counts(write):
    write(
        own="0::/slice/unit",
        slice__unit__cpuDOTmax="400000 100000",
        slice__cpuDOTmax="100000 100000",
        other__cpuDOTmax="10000 100000",  # not above it
        cpuDOTmax="max 100000",
    )
    assert core_limit() == 1


def test_a_container_of_cgroups_1_sees_its_own_group_as_the_root(write):
    write(
        own="4:memory:/docker/4f1e\n3:cpu,cpuacct:/docker/4f1e\n",
        cpu__cpuDOTcfs_quota_us="300000",
        cpu__cpuDOTcfs_period_us="100000",
        memory__docker__4f1e__memoryDOTlimit_in_bytes="500",
        memory__docker__4f1e__memoryDOTusage_in_bytes="200",
        memory__memoryDOTlimit_in_bytes="900",
        memory__memoryDOTusage_in_bytes="800",
    )
    assert core_limit() == 3
    assert (memory_limit(), memory_left()) == (500, 100)
