"""A headless Chromium by the WebDriver protocol (W3C, 2018), as far as the test of reports needs it."""

import json
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, driver, chromium, profile):
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.base = None
        for line in self.process.stdout:
            if "started successfully on port" in line:
                self.base = "http://127.0.0.1:" + line.rstrip(".\n").split()[-1]
                break
        if not self.base:
            raise RuntimeError("chromedriver does not start")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1500,1300", "--user-data-dir=" + profile]
        options = {"binary": chromium, "args": arguments}
        always = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": options}
        self.session = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": always}})["sessionId"]

    def call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base + path, method=method, data=data, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()[:500]) from None

    def open(self, path):
        self.call("POST", self.session + "/url", {"url": "file://" + path})

    def run(self, script, *arguments):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, expression, seconds=30):
        """Until the expression holds; its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run("return " + expression)
            if value:
                return value
            time.sleep(0.05)
        raise RuntimeError("in vain: " + expression)

    def find(self, selector):
        return self.call("POST", self.session + "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"{self.session}/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self.call("POST", f"{self.session}/element/{self.find(selector)}/value", {"text": text})

    def click_at(self, selector, x, y):
        """x, y: pixels from the middle of the element."""
        move = {"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": {ELEMENT: self.find(selector)}}
        steps = [move, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": steps}]})

    def complaints(self):
        return [entry for entry in self.call("POST", self.session + "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
