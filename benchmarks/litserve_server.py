# SPDX-License-Identifier: Apache-2.0
"""A classifier around LitServe, as its documentation builds one: litserve_server.py ARCHITECTURE PORT torch|openvino.

A POST request to /predict has {"image": the file's bytes in base64}.  The preprocessing is timm's.  With openvino, run
`opt_in_out --opt_out` of its environment first: without a network, the telemetry of its converter takes the processor.
"""

import base64
import io
import os
import sys

import litserve
import timm
import torch
from PIL import Image

ARCHITECTURE, PORT, BACKEND = sys.argv[1], int(sys.argv[2]), sys.argv[3]
MAX_BATCH = 8


def openvino_function(model, size):
    """The logits of a batch, computed by OpenVINO on all cores, with a compiled model for each batch size."""
    import openvino

    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": os.cpu_count(), "ENABLE_CPU_PINNING": False}
    compiled = {}
    for batch in range(1, MAX_BATCH + 1):
        example = torch.zeros(batch, *size)
        graph = openvino.convert_model(model, example_input=example, input=list(example.shape))
        compiled[batch] = openvino.Core().compile_model(graph, "CPU", options)
    return lambda batch: torch.from_numpy(compiled[len(batch)](batch.numpy())[0])


class Classifier(litserve.LitAPI):
    def setup(self, device):
        torch.set_num_threads(os.cpu_count())
        model = timm.create_model(ARCHITECTURE, pretrained=False).eval()
        data = timm.data.resolve_model_data_config(model)
        self.transform = timm.data.create_transform(**data, is_training=False)
        self.model = openvino_function(model, data["input_size"]) if BACKEND == "openvino" else model

    def decode_request(self, request):
        return base64.b64decode(request["image"])

    def batch(self, inputs):
        return torch.stack([self.transform(Image.open(io.BytesIO(data)).convert("RGB")) for data in inputs])

    def predict(self, batch):
        with torch.inference_mode():
            return self.model(batch).softmax(-1).topk(5)

    def unbatch(self, output):
        return [
            {"classes": classes, "probabilities": probabilities}
            for classes, probabilities in zip(output.indices.tolist(), output.values.tolist(), strict=True)
        ]

    def encode_response(self, output):
        return output


if __name__ == "__main__":
    api = Classifier(max_batch_size=MAX_BATCH, batch_timeout=0.005)
    litserve.LitServer(api, accelerator="cpu", workers_per_device=1).run(
        port=PORT, log_level="warning", generate_client_file=False
    )
