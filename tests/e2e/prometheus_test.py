"""Debian's Prometheus scrapes a busy daemon: it takes every expression of the dashboard and of the
alerts, and each of the dashboard's has an answer."""
import json
import pathlib
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request

import busy
import fake_nvml
import server

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
DASHBOARD = json.loads((DEPLOY / "grafana" / "longwire.json").read_text())
# What Grafana puts there.
VARIABLES = {"$instance": ".*", "$__rate_interval": "1m"}
# The rates want two scrapes.
SETTINGS = """
global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}
rule_files: ["{alerts}"]
scrape_configs:
  - job_name: longwire
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """Of a folder of its own, on a free port."""

    def __init__(self, target, folder):
        self.port = server.free_port()
        settings = folder / "prometheus.yml"
        settings.write_text(SETTINGS.format(alerts=ALERTS, target=target))
        self.log = folder / "prometheus.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={settings}",
                 f"--storage.tsdb.path={folder / 'prometheus'}",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def end(self):
        self.process.kill()
        self.process.wait()

    def get(self, what, **words):
        """The data of the answer; an AssertionError with what Prometheus says against it."""
        words = urllib.parse.urlencode(words)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{what}?{words}",
                                        timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refusal:
            raise AssertionError(f"{words}: {refusal.read().decode()}") from refusal

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def has_scraped(self):
        if self.process.poll() is not None:
            raise AssertionError(self.log.read_text())
        try:
            counts = self.query("count_over_time(longwire_build_info[1m])")
        except (OSError, AssertionError):
            return False  # not ready
        return bool(counts) and int(counts[0]["value"][1]) >= 3


def expressions():
    """Title and expression of each of the dashboard's queries, with its variables' values."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            yield panel["title"], expression


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        driver = cls.enterClassContext(fake_nvml.Driver({**fake_nvml.VALUES, "reasons": 1}))
        cls.longwire = cls.enterClassContext(busy.BusyServer(driver.path))
        cls.longwire.make_busy(cls)
        cls.prometheus = Prometheus(cls.longwire.metrics, cls.longwire.runtime)
        cls.addClassCleanup(cls.prometheus.end)
        server.wait_for(cls.prometheus.has_scraped, 20, "three scrapes")

    def test_each_query_of_the_dashboard_has_an_answer(self):
        told = list(expressions())
        self.assertGreater(len(told), 20)
        for title, expression in told:
            with self.subTest(title):
                self.assertNotIn("$", expression)
                self.assertTrue(self.prometheus.query(expression), expression)

    def test_the_dashboard_finds_the_servers(self):
        [query] = [variable["query"]["query"] for variable in DASHBOARD["templating"]["list"]
                   if variable["name"] == "instance"]
        self.assertEqual("label_values(longwire_build_info, instance)", query)
        self.assertEqual([self.longwire.metrics], self.prometheus.get(
            "label/instance/values", **{"match[]": "longwire_build_info"}))

    def test_the_alerts_are_evaluated_and_none_fires(self):
        def rules():
            [group] = self.prometheus.get("rules")["groups"]
            return group["rules"]
        server.wait_for(lambda: all(rule["health"] != "unknown" for rule in rules()), 10,
                        "the first evaluation")
        for rule in rules():
            self.assertEqual(("ok", ""), (rule["health"], rule.get("lastError", "")))
            self.assertEqual("inactive", rule["state"], rule["name"])
            self.assertIsNotNone(self.prometheus.query(rule["query"]))

    def test_an_alert_is_pending_where_there_is_cause(self):
        self.assertEqual(0, self.longwire.cli("admin", "drain").code)
        pending = 'ALERTS{alertname="LongwireDrainedForLong", alertstate="pending"}'
        server.wait_for(lambda: self.prometheus.query(pending), 10, "the alert")
        self.assertEqual(0, self.longwire.cli("admin", "drain", "--off").code)
        server.wait_for(lambda: not self.prometheus.query(pending), 10, "the alert's end")


class RulesTest(unittest.TestCase):
    def promtool(self, *words):
        result = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False,
                                cwd=pathlib.Path(__file__).parent)
        self.assertEqual(0, result.returncode, result.stdout + result.stderr)
        return result.stdout

    def test_they_are_rules(self):
        self.assertRegex(self.promtool("check", "rules", "--lint-fatal", str(ALERTS)),
                         r"SUCCESS: \d+ rules found")

    def test_each_fires_when_it_should_and_no_other(self):
        self.assertIn("SUCCESS", self.promtool("test", "rules", "alerts_cases.yaml"))


if __name__ == "__main__":
    unittest.main()
