"""The manifests of deploy/recipes/kubernetes: each field against the types of Kubernetes' API, and
what they name against each other. The types come from npm, once for each build folder."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

HERE = pathlib.Path(__file__).resolve().parent
MANIFESTS = HERE.parents[1] / "deploy" / "recipes" / "kubernetes"
BUILD = pathlib.Path(os.environ.get("LONGWIRE_BUILD", HERE.parents[1] / "build"))
GROUPS = {"v1": "v1", "apps/v1": "apps/v1", "networking.k8s.io/v1": "networking.k8s.io/v1"}


def documents():
    """(file, document) of each object."""
    for file in sorted(MANIFESTS.glob("*.yaml")):
        if file.name in ("kustomization.yaml", "longwired.yaml"):
            continue
        for document in yaml.safe_load_all(file.read_text()):
            yield file.name, document


def of_kind(kind):
    return {one["metadata"]["name"]: one for _, one in documents() if one["kind"] == kind}


def pods():
    for kind in ("DaemonSet", "Deployment"):
        for one in of_kind(kind).values():
            yield one["spec"]["template"]


class TypesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = BUILD.resolve() / "manifest-types"
        if not (cls.folder / "complete").exists():
            shutil.rmtree(cls.folder, ignore_errors=True)
            shutil.copytree(HERE / "kubernetes", cls.folder)
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], check=True,
                           cwd=cls.folder, stdout=subprocess.DEVNULL)
            (cls.folder / "complete").touch()

    def compile(self, objects):
        """What the compiler says of the objects."""
        lines = []
        for number, one in enumerate(objects):
            lines += [f'import {{ I{one["kind"]} as Type{number} }} from '
                      f'"kubernetes-models/{GROUPS[one["apiVersion"]]}";',
                      f"export const object{number}: Type{number} = {json.dumps(one)};"]
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            file = pathlib.Path(scratch) / "manifests.ts"
            file.write_text("\n".join(lines))
            result = subprocess.run(
                ["node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module",
                 "node16", "--moduleResolution", "node16", file], cwd=self.folder, text=True,
                capture_output=True, check=False)
        self.assertEqual(result.returncode != 0, bool(result.stdout), result.stderr)
        return result.stdout

    def test_each_field_is_one_of_the_api(self):
        objects = [one for _, one in documents()]
        self.assertGreaterEqual(len(objects), 7)
        self.assertEqual("", self.compile(objects))

    def test_mistakes_are_found(self):
        [server] = of_kind("DaemonSet").values()
        text = json.dumps(server)
        for good, bad in (('"volumeMounts"', '"volumeMount"'), ('"containerPort": 7411',
                          '"containerPort": "7411"'), ('"selector": {"matchLabels"',
                          '"selektor": {"matchLabels"')):
            self.assertIn(good, text)
            self.assertNotEqual("", self.compile([json.loads(text.replace(good, bad))]), bad)


class NamesTest(unittest.TestCase):
    def setUp(self):
        self.customization = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())

    def test_each_file_is_used(self):
        generated = [file for one in self.customization["configMapGenerator"]
                     for file in one["files"]]
        used = {"kustomization.yaml", *self.customization["resources"], *generated}
        self.assertEqual({file.name for file in MANIFESTS.glob("*.yaml")}, used)

    def test_volumes_secrets_and_images_are_there(self):
        maps = {one["name"] for one in self.customization["configMapGenerator"]}
        images = {one["name"] for one in self.customization["images"]}
        seen = set()
        for pod in pods():
            volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
            for volume in volumes.values():
                if "secret" in volume:
                    self.assertIn(volume["secret"]["secretName"], of_kind("Secret"))
                if "configMap" in volume:
                    self.assertIn(volume["configMap"]["name"], maps)
            every = pod["spec"]["containers"] + pod["spec"].get("initContainers", [])
            mounted = {mount["name"] for one in every for mount in one["volumeMounts"]}
            self.assertEqual(set(volumes), mounted)
            seen |= {one["image"] for one in every if one["image"] in images}
        self.assertEqual(images, seen)

    def test_selectors_find_what_they_should(self):
        [server] = of_kind("DaemonSet").values()
        [service] = of_kind("Service").values()
        [policy] = of_kind("NetworkPolicy").values()
        [program] = of_kind("Deployment").values()
        labels = server["spec"]["template"]["metadata"]["labels"]
        for selector in (server["spec"]["selector"]["matchLabels"], service["spec"]["selector"],
                         policy["spec"]["podSelector"]["matchLabels"]):
            self.assertLessEqual(selector.items(), labels.items())
        [rule] = policy["spec"]["ingress"]
        allowed = rule["from"][0]["podSelector"]["matchLabels"]
        self.assertLessEqual(allowed.items(),
                             program["spec"]["template"]["metadata"]["labels"].items())
        [container] = server["spec"]["template"]["spec"]["containers"]
        [port] = container["ports"]
        [exposed] = service["spec"]["ports"]
        self.assertEqual((port["name"], port["containerPort"], port["containerPort"]),
                         (exposed["targetPort"], exposed["port"], rule["ports"][0]["port"]))
        value = {one["name"]: one["value"] for one in
                 program["spec"]["template"]["spec"]["containers"][0]["env"]}
        namespace = self.customization["namespace"]
        self.assertEqual(f"{service['metadata']['name']}.{namespace}.svc:{exposed['port']}",
                         value["LONGWIRE_SERVER"])

    def test_nobody_is_root(self):
        for pod in pods():
            self.assertTrue(pod["spec"]["securityContext"]["runAsNonRoot"])
            for one in pod["spec"]["containers"] + pod["spec"].get("initContainers", []):
                self.assertFalse(one["securityContext"]["allowPrivilegeEscalation"])
                self.assertEqual(["ALL"], one["securityContext"]["capabilities"]["drop"])

    def test_the_configuration_is_one(self):
        """With certificates at the paths that the server's pod mounts."""
        longwire = BUILD / "dist" / "bin" / "longwire"
        with tempfile.TemporaryDirectory() as folder:
            for words in (["init"], ["server", "--name", "longwire.longwire.svc"]):
                subprocess.run([longwire, "cert", *words, "--dir", folder], check=True,
                               capture_output=True)
            text = (MANIFESTS / "longwired.yaml").read_text()
            for path, name in (("tls.crt", "longwire.longwire.svc.crt"), ("ca.crt", "ca.crt"),
                               ("tls.key", "longwire.longwire.svc.key")):
                self.assertIn(f"/etc/longwire/tls/{path}", text)
                text = text.replace(f"/etc/longwire/tls/{path}", f"{folder}/{name}")
            file = pathlib.Path(folder) / "longwired.yaml"
            file.write_text(text)
            result = subprocess.run([longwire, "config", "check", file], capture_output=True,
                                    text=True, check=False)
            self.assertEqual(0, result.returncode, result.stderr)
        secrets = of_kind("Secret")
        text = (MANIFESTS / "longwired.yaml").read_text()
        keys = set(re.findall(r"/etc/longwire/tls/(\S+)", text))
        self.assertEqual(keys, set(secrets["longwire-server"]["stringData"]))


if __name__ == "__main__":
    unittest.main()
