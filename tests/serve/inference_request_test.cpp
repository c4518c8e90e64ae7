// SPDX-License-Identifier: Apache-2.0
// Bodies of the Open Inference Protocol, without a server.
#include "vitrail/serve/inference_request_internal.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;

json body_of(const std::string& datatype, const json& shape, const json& data) {
  const json input{{"name", "in"}, {"datatype", datatype}, {"shape", shape}, {"data", data}};
  return {{"inputs", json::array({input})}};
}

InferenceRequest parse(const json& body, const std::string& binary = "", const Limits& limits = {}) {
  HttpRequest request;
  request.body = body.dump();
  request.headers = {{"inference-header-content-length", std::to_string(request.body.size())}};
  request.body += binary;
  return parse_inference(request, limits);
}

json binary_input(const std::string& datatype, const json& shape, int64_t bytes) {
  const json input{
      {"name", "in"}, {"datatype", datatype}, {"shape", shape}, {"parameters", {{"binary_data_size", bytes}}}};
  return {{"inputs", json::array({input})}};
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
std::string element(const std::string& text) {
  const auto length = static_cast<uint32_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

std::vector<float> floats_of(const InferenceRequest& request) {
  const Tensor& values = request.input.values;
  return {values.data<float>(), values.data<float>() + values.numel()};
}

TEST(InferenceRequest, NumbersAreFlatOrNestedJsonOrBinary) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  for (const json& data : {json::parse("[1, 2, 3, 4, 5, 6]"), json::parse("[[1, 2, 3], [4, 5, 6]]")}) {
    const InferenceRequest request = parse(body_of("FP32", {2, 3}, data));
    EXPECT_EQ(request.input.name, "in");
    EXPECT_EQ(request.input.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(floats_of(request), values);
    EXPECT_FALSE(request.binary);
    EXPECT_EQ(request.id, std::nullopt);
  }
  EXPECT_EQ(floats_of(parse(binary_input("FP32", {2, 3}, 24), bytes_of(values))), values);
}

TEST(InferenceRequest, TextsAreBase64OrBinaryElements) {
  const InferenceRequest text = parse(body_of("BYTES", {2}, {"QUI=", "data:image/png;base64,QUJD"}));
  EXPECT_EQ(text.input.strings, (std::vector<std::string>{"AB", "ABC"}));
  const std::string elements = element("AB") + element("") + element(std::string(300, 'x'));
  const auto size = static_cast<int64_t>(elements.size());
  EXPECT_EQ(parse(binary_input("BYTES", {3}, size), elements).input.strings,
            (std::vector<std::string>{"AB", "", std::string(300, 'x')}));
  const auto fails = [](const std::string& bytes, const char* message) {
    const std::string got =
        error_of([&] { parse(binary_input("BYTES", {1}, static_cast<int64_t>(bytes.size())), bytes); });
    EXPECT_TRUE(contains(got, message)) << got;
  };
  fails("\1\0\0", "4 bytes of length");
  fails(element("AB").substr(0, 5), "at most 1 bytes of an element, got 2");
  fails(element("AB") + "x", "4 bytes of length");
}

TEST(InferenceRequest, BytesAndSizesAgree) {
  const std::string six = bytes_of({1, 2, 3, 4, 5, 6});
  const auto fails = [&](const json& body, const std::string& binary, const char* message) {
    const std::string got = error_of([&] { parse(body, binary); });
    EXPECT_TRUE(contains(got, message)) << got;
  };
  fails(binary_input("FP32", {2, 3}, 24), six + "x", "body: expected no bytes after the inputs, got 1");
  fails(binary_input("FP32", {2, 3}, 24), six.substr(1), "binary_data_size: expected at most 23 bytes, got 24");
  fails(binary_input("FP32", {2, 3}, 23), six.substr(1), "4 bytes for each value, got 23 bytes");
  fails(binary_input("FP32", {2, 2}, 24), six, "4 elements, which its shape has, got 6");
  fails(binary_input("FP32", {2, 3}, -1), six, "binary_data_size: expected an integer");
  fails(body_of("FP32", {2, 3}, {1, 2}), "x", "no bytes after the inputs");
  fails(body_of("FP32", {2, 3}, {1, 2}), "", "6 elements, which its shape has, got 2");
  fails(body_of("FP32", {0, 3}, json::array()), "", "at least one image");
  fails(body_of("FP32", json::array(), json::array()), "", "a list of 1 to 8 sizes");
  fails(body_of("FP32", {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1}), "", "a list of 1 to 8 sizes");
  EXPECT_EQ(parse(body_of("FP32", {1, 1, 1, 1, 1, 1, 1, 1}, {1})).input.shape.size(), 8U);
  for (const json& size : {json(-1), json(1.5), json("1"), json(int64_t{INT32_MAX} + 1), json(UINT64_MAX)}) {
    fails(body_of("FP32", json::array({size}), {1}), "", "shape: expected an integer");
  }
  fails(body_of("FP32", {65536, 65536}, {1}), "", "fewer than 2^31 elements");
  fails(body_of("FP64", {1}, {1}), "", "the datatype FP32 or BYTES, got 'FP64'");
  fails(body_of("FP32", {1}, {"a"}), "", "in: expected numbers, got string");
  fails(body_of("BYTES", {1}, {1}), "", "in: expected images in base64");
  fails(json::object(), "", "the member \"inputs\"");
  fails({{"inputs", json::array()}}, "", "one input");
  fails({{"inputs", {json::object(), json::object()}}}, "", "one input");
}

TEST(InferenceRequest, ImagesAndOutputsHaveLimits) {
  const auto status_of = [](const json& body, const Limits& limits) {
    try {
      parse(body, "", limits);
      return 200;
    } catch (const HttpError& error) {
      return error.status();
    }
  };
  const json two = body_of("BYTES", {2}, {"QUI=", "QUI="});
  EXPECT_EQ(status_of(two, {.images = 2}), 200);
  EXPECT_EQ(status_of(two, {.images = 1}), 413);
  EXPECT_EQ(status_of(body_of("BYTES", {1, 2}, {"QUI=", "QUI="}), {.images = 1}), 413);
  EXPECT_EQ(status_of(body_of("FP32", {2, 1}, {1, 2}), {.images = 1}), 413);
  json outputs = two;
  outputs["outputs"] = {{{"name", "a"}}, {{"name", "b"}}};
  EXPECT_EQ(status_of(outputs, {.outputs = 2}), 200);
  EXPECT_EQ(status_of(outputs, {.outputs = 1}), 413);
}

TEST(InferenceRequest, OutputsTakeTheRequestsFormUnlessTheySayAnother) {
  json body = body_of("FP32", {1}, {1});
  body["id"] = "42";
  body["parameters"] = {{"binary_data_output", true}};
  body["outputs"] = {{{"name", "logits"}},
                     {{"name", "text"}, {"parameters", {{"binary_data", false}, {"classification", 3}}}}};
  const InferenceRequest request = parse(body);
  EXPECT_EQ(request.id, "42");
  EXPECT_TRUE(request.binary);
  ASSERT_EQ(request.outputs.size(), 2U);
  EXPECT_TRUE(request.outputs[0].binary);
  EXPECT_EQ(request.outputs[0].classification, 0);
  EXPECT_FALSE(request.outputs[1].binary);
  EXPECT_EQ(request.outputs[1].classification, 3);
  body["outputs"][1]["name"] = "logits";
  EXPECT_TRUE(contains(error_of([&] { parse(body); }), "different names, got 'logits' twice"));
  body["outputs"] = json::object();
  EXPECT_TRUE(contains(error_of([&] { parse(body); }), "outputs: expected a list"));
  body.erase("outputs");
  body["parameters"] = {{"binary_data_output", 1}};
  EXPECT_TRUE(contains(error_of([&] { parse(body); }), "true or false"));
}

// The client library of Triton sends one image as the whole body.
TEST(InferenceRequest, AHeaderOfNoBytesMakesTheBodyTheImage) {
  const auto parsed = [](const char* length) {
    HttpRequest request;
    request.headers = {{"inference-header-content-length", length}};
    request.body = "an image";
    return parse_inference(request, {});
  };
  EXPECT_EQ(parsed("0").input.strings, std::vector<std::string>{"an image"});
  EXPECT_EQ(parsed("0").input.shape, std::vector<int64_t>{1});
  EXPECT_TRUE(parsed("0").binary);
  for (const char* length : {"9", "-1", "x", "1.0"}) {
    EXPECT_TRUE(contains(error_of([&] { parsed(length); }), "Inference-Header-Content-Length")) << length;
  }
}

TEST(InferenceResponse, BinaryOutputsFollowTheJsonInTheirOrder) {
  const std::vector<InferenceOutput> outputs{
      {.name = "a", .shape = {2}, .values = {1, 2.5F}, .strings = {}, .binary = true},
      {.name = "b", .shape = {1}, .values = {7}, .strings = {}},
      {.name = "c", .shape = {2}, .values = {}, .strings = {"cat", ""}, .is_text = true, .binary = true},
      {.name = "d", .shape = {1}, .values = {}, .strings = {"dog"}, .is_text = true}};
  const HttpResponse response = inference_response("photos", "42", outputs);
  EXPECT_EQ(response.content_type, "application/octet-stream");
  ASSERT_EQ(response.headers.size(), 1U);
  EXPECT_EQ(response.headers[0].first, "Inference-Header-Content-Length");
  const size_t length = std::stoul(response.headers[0].second);
  const json object = json::parse(response.body.substr(0, length));
  EXPECT_EQ(response.body.substr(length), bytes_of({1, 2.5F}) + element("cat") + element(""));
  EXPECT_EQ(object, json::parse(R"({"model_name": "photos", "model_version": "1", "id": "42", "outputs": [
      {"name": "a", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}},
      {"name": "b", "datatype": "FP32", "shape": [1], "data": [7.0]},
      {"name": "c", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": 11}},
      {"name": "d", "datatype": "BYTES", "shape": [1], "data": ["dog"]}]})"));
  const HttpResponse text = inference_response("photos", std::nullopt, {outputs[1]});
  EXPECT_EQ(text.content_type, "application/json");
  EXPECT_TRUE(text.headers.empty());
  EXPECT_FALSE(json::parse(text.body).contains("id"));
}

TEST(InferenceRequest, RefusalsNameTheFieldAndItsValue) {
  const auto refusal = [](const json& body, const std::string& binary = "", const Limits& limits = {}) {
    return error_of([&] { parse(body, binary, limits); });
  };
  EXPECT_ERROR(refusal({{"inputs", json::array()}}), "inputs", "0");
  EXPECT_ERROR(refusal({{"inputs", {json::object(), json::object()}}}), "inputs", "2");
  EXPECT_ERROR(refusal(body_of("FP32", json::array(), {1})), "shape", "[]");
  EXPECT_ERROR(refusal(body_of("FP32", 1, {1})), "shape", "1");
  EXPECT_ERROR(refusal(body_of("FP32", {-1}, {1})), "shape", "-1");
  EXPECT_ERROR(refusal(body_of("FP32", {2147483648}, {1})), "shape", "2147483648");
  EXPECT_ERROR(refusal(body_of("FP32", {65536, 32768}, {1})), "shape", "32768 among its sizes");
  EXPECT_ERROR(refusal(body_of("FP32", {65536, 32767}, {1})), "in", "1");
  EXPECT_ERROR(refusal(body_of("INT8", {1}, {1})), "in", "'INT8'");
  EXPECT_ERROR(refusal(body_of("FP32", {2}, {1, true})), "in", "boolean");
  EXPECT_ERROR(refusal(body_of("BYTES", {1}, {1})), "in", "number");
  EXPECT_ERROR(refusal(body_of("FP32", {2}, {1, 2, 3})), "in", "3");
  EXPECT_ERROR(refusal(body_of("FP32", {0, 2}, json::array())), "in", "none");
  EXPECT_EQ(refusal(body_of("FP32", {3, 1}, {1, 2, 3}), "", {.images = 2}), "at most 2 images in a request, got 3");
  EXPECT_ERROR(refusal(binary_input("FP32", {1}, 5), "12345"), "in", "5 bytes");
  EXPECT_ERROR(refusal(binary_input("FP32", {1}, 5), "1234"), "binary_data_size", "5");
  EXPECT_ERROR(refusal(binary_input("FP32", {1}, -1), "1234"), "binary_data_size", "-1");
  EXPECT_ERROR(refusal(binary_input("BYTES", {1}, 3), "123"), "in", "fewer");
  EXPECT_ERROR(refusal(binary_input("BYTES", {1}, 6), std::string("\3\0\0\0ab", 6)), "in", "3");
  EXPECT_ERROR(refusal(body_of("FP32", {1}, {1}), "x"), "body", "1");
  json body = body_of("FP32", {1}, {1});
  body["id"] = 7;
  EXPECT_ERROR(refusal(body), "id", "number");
  body["id"] = "7";
  body["parameters"] = 1;
  EXPECT_ERROR(refusal(body), "parameters", "number");
  body["parameters"] = {{"binary_data_output", "yes"}};
  EXPECT_ERROR(refusal(body), "binary_data_output", "string");
  body.erase("parameters");
  body["outputs"] = {{{"name", "a"}, {"parameters", {{"binary_data", 1}}}}};
  EXPECT_ERROR(refusal(body), "binary_data", "number");
  body["outputs"] = {{{"name", "a"}, {"parameters", {{"classification", 1048577}}}}};
  EXPECT_ERROR(refusal(body), "classification", "1048577");
  body["outputs"] = {{{"name", "a"}}, {{"name", "b"}}, {{"name", "a"}}};
  EXPECT_ERROR(refusal(body), "outputs", "'a' twice");
  EXPECT_EQ(refusal(body, "", {.outputs = 2}), "at most 2 outputs in a request, got 3");
  body["inputs"][0].erase("data");
  body.erase("outputs");
  EXPECT_ERROR(refusal(body), "body", "none");
}

// 1e39 is finite in JSON, but not as FP32.
TEST(InferenceRequest, NumbersAreFinite) {
  const float largest = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {nan, infinity, -infinity}) {
    const std::string got = error_of([&] { parse(binary_input("FP32", {3}, 12), bytes_of({0, 1, value})); });
    EXPECT_TRUE(got.starts_with("in: expected finite numbers, got ")) << got;
    EXPECT_TRUE(got.ends_with(" at element 2")) << got;
  }
  EXPECT_ERROR(error_of([&] { parse(body_of("FP32", {2}, {1e39, 0})); }), "in", "inf at element 0");
  const std::vector<float> values{largest, -largest, 0, std::numeric_limits<float>::denorm_min()};
  EXPECT_EQ(floats_of(parse(binary_input("FP32", {4}, 16), bytes_of(values))), values);
}

TEST(InferenceRequest, WithoutAHeaderTheBodyIsJson) {
  HttpRequest request;
  request.body = body_of("FP32", {1, 2}, {0.5, -1.5}).dump();
  const InferenceRequest parsed = parse_inference(request, {});
  EXPECT_EQ(floats_of(parsed), (std::vector<float>{0.5F, -1.5F}));
  EXPECT_EQ(parsed.input.datatype, "FP32");
  EXPECT_TRUE(parsed.outputs.empty());
  EXPECT_TRUE(parsed.input.strings.empty());
  request.headers = {{"inference-header-content-length", "0"}};
  const InferenceRequest image = parse_inference(request, {});
  EXPECT_EQ(image.input.name, "images");
  EXPECT_EQ(image.input.datatype, "BYTES");
  EXPECT_EQ(image.input.strings, std::vector<std::string>{request.body});
}

}  // namespace
}  // namespace vitrail::serve
