"""Which settings Spark gets, without starting it."""

import os

import pytest

from cluster.errors import ClusterError
from cluster.session import SUBMITTED, name_and_value, settings_of


def test_a_setting_has_a_name_of_spark_and_a_value():
    assert name_and_value("spark.a=b=c") == ("spark.a", "b=c")
    for wrong in ("spark.a", "a=b", "=", ""):
        with pytest.raises(ClusterError, match="--conf is .*; it must be NAME=VALUE"):
            name_and_value(wrong)


def test_on_this_machine_alone_nothing_of_spark_can_be_reached_from_elsewhere(monkeypatch):
    monkeypatch.delenv(SUBMITTED, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "another")
    for master in (None, "local[3]"):
        settings = settings_of(master)
        assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
        assert settings["spark.ui.enabled"] == "false"
        assert settings["spark.master"] == master or settings["spark.master"].startswith("local[")
        assert os.environ["PYSPARK_PYTHON"] != "another"  # but this Python


def test_a_cluster_and_spark_submit_have_their_own_settings(monkeypatch):
    monkeypatch.delenv(SUBMITTED, raising=False)
    assert settings_of("spark://a:7077") == {"spark.master": "spark://a:7077"}
    monkeypatch.setenv(SUBMITTED, "1")
    assert settings_of(None) == {}
    assert settings_of("yarn") == {"spark.master": "yarn"}
