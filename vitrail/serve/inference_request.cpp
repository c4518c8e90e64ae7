// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/inference_request_internal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "vitrail/base/base64_internal.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/json_body_internal.h"
#include "vitrail/serve/request_images_internal.h"
#include "vitrail/tasks/task.h"

namespace vitrail::serve {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "binary tensors are little-endian");

constexpr size_t kLengthBytes = 4;  // in front of an element of BYTES

const json& object_or_empty(const json& object, const std::string& name) {
  static const json kEmpty = json::object();
  const auto found = object.find(name);
  if (found == object.end()) return kEmpty;
  if (!found->is_object()) throw Error(name, "an object", found->type_name());
  return *found;
}

bool flag_in(const json& parameters, const std::string& name, bool preset) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return preset;
  if (!found->is_boolean()) throw Error(name, "true or false", found->type_name());
  return found->get<bool>();
}

// A count in JSON.  Negative numbers, fractions and text are errors.
int64_t count_of(const json& value, const std::string& where, int64_t max) {
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > max ||
      (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(max)))
    throw Error(where, str("an integer from 0 to ", max), value.dump());
  return value.get<int64_t>();
}

std::vector<int64_t> shape_of(const json& input) {
  const json& given = member(input, "shape");
  if (!given.is_array() || given.empty() || given.size() > 8)
    throw Error("shape", "a list of 1 to 8 sizes", given.dump());
  std::vector<int64_t> shape;
  for (const json& size : given) shape.push_back(count_of(size, "shape", INT32_MAX));
  return shape;
}

int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count) || count > INT32_MAX)
      throw Error("shape", "a shape with fewer than 2^31 elements", str(size, " among its sizes"));
  }
  return count;
}

// Nested or flat data, in row-major order.
template <class Add>
void flatten(const json& data, const Add& add) {
  if (!data.is_array()) return add(data);
  for (const json& element : data) flatten(element, add);
}

void take_json_data(const json& data, InferenceInput& input) {
  if (input.datatype == "FP32") {
    std::vector<float> values;
    flatten(data, [&](const json& value) {
      if (!value.is_number()) throw Error(input.name, "numbers", value.type_name());
      values.push_back(value.get<float>());
    });
    input.values = Tensor::from<float>({std::ssize(values)}, values);
    return;
  }
  flatten(data, [&](const json& value) {
    if (!value.is_string()) throw Error(input.name, "images in base64, or data URIs", value.type_name());
    const auto& text = value.get_ref<const std::string&>();
    input.strings.push_back(from_base64_or_uri(text, input.name));
  });
}

void take_binary_data(std::string_view bytes, InferenceInput& input) {
  if (input.datatype == "FP32") {
    if (bytes.size() % sizeof(float) != 0)
      throw Error(input.name, "4 bytes for each value", str(bytes.size(), " bytes"));
    input.values = Tensor::empty({static_cast<int64_t>(bytes.size() / sizeof(float))});
    if (!bytes.empty()) std::memcpy(input.values.data<float>(), bytes.data(), bytes.size());
    return;
  }
  while (!bytes.empty()) {
    uint32_t length = 0;
    if (bytes.size() < kLengthBytes) throw Error(input.name, "4 bytes of length before an element", "fewer");
    std::memcpy(&length, bytes.data(), kLengthBytes);
    bytes.remove_prefix(kLengthBytes);
    if (length > bytes.size())
      throw Error(input.name, str("at most ", bytes.size(), " bytes of an element"), str(length));
    input.strings.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
}

void check_input(const InferenceInput& input, const Limits& limits) {
  const int64_t expected = element_count(input.shape);
  const int64_t got = input.datatype == "FP32" ? input.values.numel() : std::ssize(input.strings);
  if (expected != got) throw Error(input.name, str(expected, " elements, which its shape has"), str(got));
  const size_t images = static_cast<size_t>(input.shape.front());
  if (images == 0) throw Error(input.name, "at least one image", "none");
  if (images > limits.images || input.strings.size() > limits.images)
    throw HttpError(413, str("at most ", limits.images, " images in a request, got ", images));
  if (input.datatype == "FP32") tasks::require_finite(input.name, input.values);
}

InferenceInput parse_input(const json& given, std::string_view& binary) {
  InferenceInput input{.name = text_member(given, "name", ""),
                       .datatype = text_member(given, "datatype", ""),
                       .shape = shape_of(given),
                       .values = {},
                       .strings = {}};
  if (input.datatype != "FP32" && input.datatype != "BYTES")
    throw Error(input.name, "the datatype FP32 or BYTES", "'" + input.datatype + "'");
  const json& parameters = object_or_empty(given, "parameters");
  const auto size = parameters.find("binary_data_size");
  if (size == parameters.end()) {
    take_json_data(member(given, "data"), input);
    return input;
  }
  const auto count = static_cast<size_t>(count_of(*size, "binary_data_size", INT64_MAX));
  if (count > binary.size()) throw Error("binary_data_size", str("at most ", binary.size(), " bytes"), str(count));
  take_binary_data(binary.substr(0, count), input);
  binary.remove_prefix(count);
  return input;
}

std::vector<RequestedOutput> parse_outputs(const json& body, bool binary, const Limits& limits) {
  std::vector<RequestedOutput> outputs;
  const auto given = body.find("outputs");
  if (given == body.end()) return outputs;
  if (!given->is_array()) throw Error("outputs", "a list", given->type_name());
  if (given->size() > limits.outputs)
    throw HttpError(413, str("at most ", limits.outputs, " outputs in a request, got ", given->size()));
  for (const json& output : *given) {
    const std::string name = text_member(output, "name", "");
    for (const RequestedOutput& other : outputs) {
      if (other.name == name) throw Error("outputs", "different names", "'" + name + "' twice");
    }
    const json& parameters = object_or_empty(output, "parameters");
    const auto classification = parameters.find("classification");
    outputs.push_back({name, flag_in(parameters, "binary_data", binary),
                       classification == parameters.end() ? 0 : count_of(*classification, "classification", 1 << 20)});
  }
  return outputs;
}

}  // namespace

InferenceRequest parse_inference(const HttpRequest& request, const Limits& limits, const ParseBudget& budget) {
  const std::string_view length = request.header("inference-header-content-length");
  std::string_view text = request.body, binary;
  InferenceRequest result;
  if (!length.empty()) {
    const int64_t size =
        parse_integer("Inference-Header-Content-Length", length, {0, static_cast<int64_t>(request.body.size())});
    text = text.substr(0, static_cast<size_t>(size));
    binary = std::string_view(request.body).substr(static_cast<size_t>(size));
    if (size == 0) {  // the body is the only image
      result.input = {"images", "BYTES", {1}, {}, {request.body}};
      result.binary = true;
      return result;
    }
  }
  const json body = parse_json(text, limits.json_depth, budget);
  const json& inputs = member(body, "inputs");
  if (!inputs.is_array() || inputs.size() != 1)
    throw Error("inputs", "one input: images (BYTES) or pixels (FP32)", str(inputs.size()));
  if (body.contains("id")) result.id = text_member(body, "id", "");
  result.binary = flag_in(object_or_empty(body, "parameters"), "binary_data_output", false);
  result.outputs = parse_outputs(body, result.binary, limits);
  result.input = parse_input(inputs.front(), binary);
  if (!binary.empty()) throw Error("body", "no bytes after the inputs", str(binary.size()));
  check_input(result.input, limits);
  return result;
}

HttpResponse inference_response(const std::string& model, const std::optional<std::string>& id,
                                const std::vector<InferenceOutput>& outputs) {
  ordered_json list = ordered_json::array();
  std::string binary;
  for (const InferenceOutput& output : outputs) {
    ordered_json object{
        {"name", output.name}, {"datatype", output.is_text ? "BYTES" : "FP32"}, {"shape", output.shape}};
    if (!output.binary && output.is_text) object["data"] = output.strings;
    if (!output.binary && !output.is_text) object["data"] = output.values;
    if (output.binary) {
      const size_t before = binary.size();
      for (const std::string& text : output.strings) {
        const auto length = static_cast<uint32_t>(text.size());
        binary.append(reinterpret_cast<const char*>(&length), kLengthBytes).append(text);
      }
      if (!output.is_text)
        binary.append(reinterpret_cast<const char*>(output.values.data()), output.values.size() * sizeof(float));
      object["parameters"] = {{"binary_data_size", binary.size() - before}};
    }
    list.push_back(object);
  }
  ordered_json object{{"model_name", model}, {"model_version", "1"}};
  if (id) object["id"] = *id;
  object["outputs"] = list;
  HttpResponse response{.body = pipeline::json_line(object)};
  if (binary.empty()) return response;
  response.headers.emplace_back("Inference-Header-Content-Length", std::to_string(response.body.size()));
  response.content_type = "application/octet-stream";
  response.body += binary;
  return response;
}

}  // namespace vitrail::serve
