"""Run by the Python of pywb's own environment: ask pywb for pages and print what it serves.

python replay.py CONFIG.yaml < ["/job/2027id_/http://example.com/", …]
"""

import json
import sys

if __name__ == "__main__":
    from pywb.apps.frontendapp import FrontEndApp
    from werkzeug.test import Client

    client = Client(FrontEndApp(config_file=sys.argv[1]))
    answers = [client.get(path) for path in json.load(sys.stdin)]
    print(json.dumps([[answer.status_code, answer.get_data().decode("latin-1")] for answer in answers]))
