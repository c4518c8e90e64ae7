// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests and responses of the Open Inference Protocol (KServe's version 2) over REST, with the extension
// binary_tensor_data.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/serve/http_internal.h"
#include "vitrail/serve/json_body_internal.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::serve {

struct InferenceInput {
  std::string name, datatype;  // "FP32", "BYTES"
  std::vector<int64_t> shape;
  Tensor values = {};                // elements of FP32, [n]; undefined for BYTES
  std::vector<std::string> strings;  // elements of BYTES
};

struct RequestedOutput {
  std::string name;
  bool binary = false;
  int64_t classification = 0;  // the number of classes, as the extension classification; 0: the values
};

struct InferenceRequest {
  std::optional<std::string> id;
  InferenceInput input;                  // exactly one
  std::vector<RequestedOutput> outputs;  // empty: all
  bool binary = false;                   // binary_data_output: all outputs, unless they say otherwise
};

// Throws Error or HttpError for a body that is not as the protocol, sizes that do not agree, numbers that are not
// finite as FP32, and more images or outputs than the limits.
InferenceRequest parse_inference(const HttpRequest& request, const Limits& limits, const ParseBudget& budget = {});

// An output: values of FP32, or strings of BYTES.
struct InferenceOutput {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
  std::vector<std::string> strings;
  bool is_text = false, binary = false;
};

HttpResponse inference_response(const std::string& model, const std::optional<std::string>& id,
                                const std::vector<InferenceOutput>& outputs);

}  // namespace vitrail::serve
