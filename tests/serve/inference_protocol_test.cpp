// SPDX-License-Identifier: Apache-2.0
// OpenAI's embeddings and the Open Inference Protocol.
#include <cmath>
#include <cstring>

#include "tests/serve/serve_fixture.h"
#include "vitrail/base/base64_internal.h"

namespace vitrail::testing {
namespace {

std::vector<float> floats_of_bytes(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

TEST(ServeEmbeddings, ImagesAndTextsAreTheLibrarysInBothEncodings) {
  const TestServer server;
  const DualModel model(clip_model());
  const image::Image photo = noise_image(2);
  const std::vector<float> image = floats(model.embed_image(photo)), text = floats(model.embed_texts({"a cat"}));
  const json input = {"a cat", data_uri(png_of(photo)), {{"image", data_uri(png_of(photo))}}, {{"text", "a cat"}}};
  for (const char* encoding : {"float", "base64"}) {
    const json body{{"model", "clip"}, {"input", input}, {"encoding_format", encoding}};
    const HttpReply reply = server.post("/v1/embeddings", body.dump(), kJson);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json data = json::parse(reply.body)["data"];
    ASSERT_EQ(data.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      const json& given = data[i]["embedding"];
      const std::vector<float> values = given.is_string()
                                            ? floats_of_bytes(from_base64(given.get<std::string>(), "test"))
                                            : given.get<std::vector<float>>();
      EXPECT_EQ(values, i == 1 || i == 2 ? image : text) << i << encoding;
      EXPECT_EQ(data[i]["index"], i);
    }
  }
}

TEST(ServeEmbeddings, UsageCountsTheTokensOfTextsAndImages) {
  const TestServer server;
  const auto usage = [&](const json& input) {
    const HttpReply reply = server.post("/v1/embeddings", json{{"model", "clip"}, {"input", input}}.dump(), kJson);
    const json object = json::parse(reply.body)["usage"];
    EXPECT_EQ(object["prompt_tokens"], object["total_tokens"]);
    return object["total_tokens"].get<int64_t>();
  };
  const DualModel model(clip_model());
  const int64_t image = model.images().embed(noise_image(1), {.tokens = infer::Tokens::all}).size(0);
  const std::string uri = data_uri(png_of(noise_image(1)));
  EXPECT_EQ(usage(uri), image);
  EXPECT_GT(usage("a cat"), 2) << "the words and two special tokens";
  EXPECT_EQ(usage({"a cat", "a cat", uri, uri}), 2 * (usage("a cat") + image));
}

TEST(ServeEmbeddings, ErrorsHaveOpenAisForm) {
  const TestServer server;
  for (const json& body :
       std::vector<json>{{{"input", "a text"}, {"model", "small"}},
                         {{"model", "clip"}},
                         {{"model", "clip"}, {"input", json::array()}},
                         {{"model", "clip"}, {"input", {1, 2, 3}}},
                         {{"model", "clip"}, {"input", "a"}, {"dimensions", 3}},
                         {{"model", "clip"}, {"input", "http://127.0.0.1/a.png"}, {"modality", "image"}},
                         {{"model", "clip"}, {"input", "a"}, {"encoding_format", "hex"}}}) {
    const HttpReply reply = server.post("/v1/embeddings", body.dump(), kJson);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_EQ(json::parse(reply.body)["error"]["type"], "invalid_request_error") << body;
  }
  EXPECT_EQ(server.post("/v1/embeddings", json{{"model", "none"}, {"input", "a"}}.dump(), kJson).status, 404);
}

// The tensors of a response, by name.
std::map<std::string, std::vector<float>> tensors_of(const HttpReply& reply) {
  std::map<std::string, std::vector<float>> tensors;
  const auto header = reply.headers.find("inference-header-content-length");
  const size_t size = header == reply.headers.end() ? reply.body.size() : std::stoul(header->second);
  std::string binary = reply.body.substr(size);
  const json object = json::parse(reply.body.substr(0, size));
  for (const json& output : object["outputs"]) {
    if (output.contains("data")) {
      tensors[output["name"]] = output["data"].get<std::vector<float>>();
      continue;
    }
    const auto count = output["parameters"]["binary_data_size"].get<size_t>();
    tensors[output["name"]] = floats_of_bytes(binary.substr(0, count));
    binary.erase(0, count);
  }
  return tensors;
}

TEST(ServeInference, EveryFormOfInputAndOutputGivesTheLibrarysValues) {
  const TestServer server;
  const Model model(small_model());
  const image::Image photo = noise_image(4);
  const std::string png = png_of(photo);
  const auto want = model.logits_and_features({{photo}});
  const auto check = [&](const std::string& body, const std::string& headers) {
    const HttpReply reply = server.post("/v2/models/small/infer", body, headers);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const auto tensors = tensors_of(reply);
    EXPECT_EQ(tensors.at("logits"), floats(want.logits));
    EXPECT_EQ(tensors.at("embedding"), floats(want.features));
  };
  const auto with_data = [&](const json& input, bool binary) {
    return json{{"inputs", json::array({input})}, {"parameters", {{"binary_data_output", binary}}}}.dump();
  };
  const std::vector<float> pixels = floats(model.preprocess({{photo}}));
  for (const bool binary : {false, true}) {
    check(with_data({{"name", "images"}, {"datatype", "BYTES"}, {"shape", {1}}, {"data", {base64(png)}}}, binary),
          kJson);
    check(with_data({{"name", "pixels"}, {"datatype", "FP32"}, {"shape", {1, 3, 32, 32}}, {"data", pixels}}, binary),
          kJson);
    const auto length = static_cast<uint32_t>(png.size());
    const std::string element = std::string(reinterpret_cast<const char*>(&length), 4) + png;
    const std::string head = with_data({{"name", "images"},
                                        {"datatype", "BYTES"},
                                        {"shape", {1}},
                                        {"parameters", {{"binary_data_size", element.size()}}}},
                                       binary);
    check(head + element, "Inference-Header-Content-Length: " + std::to_string(head.size()) + "\r\n");
  }
  check(png, "Inference-Header-Content-Length: 0\r\n");
}

TEST(ServeInference, ClassificationGivesValuesWithIndices) {
  const TestServer server;
  const json body{{"id", "seven"},
                  {"inputs",
                   {{{"name", "images"},
                     {"datatype", "BYTES"},
                     {"shape", {2}},
                     {"data", {base64(png_of(noise_image(1))), base64(png_of(noise_image(2)))}}}}},
                  {"outputs", {{{"name", "probabilities"}, {"parameters", {{"classification", 3}}}}}}};
  const json reply = json::parse(server.post("/v2/models/small/versions/1/infer", body.dump(), kJson).body);
  EXPECT_EQ(reply["id"], "seven");
  const json& output = reply["outputs"].at(0);
  EXPECT_EQ(output["shape"], (json{2, 3}));
  EXPECT_EQ(output["datatype"], "BYTES");
  const auto best = Model(small_model()).classify(noise_image(2), 1).front();
  EXPECT_TRUE(contains(output["data"].at(3).get<std::string>(), ":" + std::to_string(best.index)));
}

TEST(ServeInference, SizesThatDoNotAgreeAreRefused) {
  const TestServer server;
  const auto status = [&](const json& input, const std::string& binary = "") {
    const std::string head = json{{"inputs", json::array({input})}}.dump();
    const std::string headers =
        binary.empty() ? kJson : "Inference-Header-Content-Length: " + std::to_string(head.size()) + "\r\n";
    return server.post("/v2/models/small/infer", head + binary, headers).status;
  };
  const json pixels{{"name", "pixels"}, {"datatype", "FP32"}};
  for (const json& shape : std::vector<json>{{1, 3, 32, 32},
                                             {2147483647, 2147483647, 4, 4},
                                             {4294967296, 1, 1, 1},
                                             {-1, 3, 32, 32},
                                             {0, 3, 32, 32},
                                             {1e308},
                                             {"1"},
                                             json::array(),
                                             {1.5, 3, 32, 32},
                                             {9223372036854775807, 9223372036854775807},
                                             {18446744073709551615u}}) {
    json input = pixels;
    input["shape"] = shape;
    input["data"] = {1, 2, 3};
    EXPECT_EQ(status(input), 400) << shape;
    input.erase("data");
    for (const json& size :
         std::vector<json>{3, 4, 5, 12, -1, 0, 4294967296, 9223372036854775807, 18446744073709551615u, 1e300, "12"}) {
      input["parameters"] = {{"binary_data_size", size}};
      EXPECT_EQ(status(input, "abcd"), 400) << shape << size;
    }
  }
  const json images{
      {"name", "images"}, {"datatype", "BYTES"}, {"shape", {1}}, {"parameters", {{"binary_data_size", 8}}}};
  EXPECT_EQ(status(images, std::string("\xff\xff\xff\xff"
                                       "abcd",
                                       8)),
            400)
      << "a length above the data";
  EXPECT_EQ(status(images, std::string("\x04\0\0\0"
                                       "abcd",
                                       8)),
            400)
      << "no image";
  for (const char length : {'\x00', '\x03', '\x05', '\x7f'}) {
    EXPECT_EQ(status(images, std::string({length, 0, 0, 0}) + "abcd"), 400) << "a length beside the data's";
  }
  for (const char* header : {"-1", "99999", "1e2", "", "18446744073709551616"}) {
    const int got =
        server.post("/v2/models/small/infer", "{}", std::string("Inference-Header-Content-Length: ") + header + "\r\n")
            .status;
    EXPECT_EQ(got, 400) << header;
  }
}

// JSON writes such numbers as null.
TEST(ServeInference, NumbersThatTheModelCannotComputeAreRefused) {
  const TestServer server;
  const auto reply = [&](float value, const char* output, bool binary) {
    const json input{{"name", "pixels"},
                     {"datatype", "FP32"},
                     {"shape", {1, 3, 32, 32}},
                     {"parameters", {{"binary_data_size", 3 * 32 * 32 * sizeof(float)}}}};
    const std::string head = json{{"inputs", json::array({input})},
                                  {"outputs", {{{"name", output}, {"parameters", {{"binary_data", binary}}}}}}}
                                 .dump();
    const std::vector<float> pixels(3 * 32 * 32, value);
    const std::string body = head + std::string(reinterpret_cast<const char*>(pixels.data()), 3 * 32 * 32 * 4);
    return server.post("/v2/models/small/infer", body, str("Inference-Header-Content-Length: ", head.size(), "\r\n"));
  };
  for (const char* output : {"logits", "probabilities", "embedding"}) {
    for (const bool binary : {false, true}) {
      EXPECT_EQ(reply(1, output, binary).status, 200) << output;
      const HttpReply nan = reply(NAN, output, binary), large = reply(3e38F, output, binary);
      EXPECT_EQ(nan.status, 400) << output;
      EXPECT_TRUE(contains(nan.body, "pixels: expected finite numbers, got nan at element 0")) << nan.body;
      EXPECT_EQ(large.status, 400) << output;
      EXPECT_TRUE(contains(large.body, str("image 0: ", output, ": expected finite numbers"))) << large.body;
    }
  }
}

// The limit holds before the names, so names of outputs that no model has get past it.
TEST(ServeInference, OutputsAreLimited) {
  serve::ServeOptions options = serve_options();
  const auto reply = [&](int outputs) {
    json body{{"inputs", {{{"name", "images"}, {"datatype", "BYTES"}, {"shape", {1}}, {"data", {""}}}}}};
    for (int i = 0; i < outputs; ++i) body["outputs"].push_back({{"name", std::to_string(i)}});
    return TestServer(options).post("/v2/models/small/infer", body.dump(), kJson);
  };
  EXPECT_EQ(reply(64).status, 400);
  EXPECT_EQ(reply(65).status, 413);
  EXPECT_TRUE(contains(reply(65).body, "at most 64 outputs in a request, got 65"));
  serve::set_limit(options.limits, "outputs", "2");
  EXPECT_EQ(reply(2).status, 400);
  EXPECT_EQ(reply(3).status, 413);
}

TEST(ServeInference, AModelThatDoesNotLoadIsAnErrorWithoutPath) {
  const auto folder = scratch_folder() / "model";
  std::filesystem::copy(small_model(), folder);
  const TestServer server({.models = {{"m", folder.string()}}, .port = 0, .model_control = true});
  std::filesystem::remove(folder / "config.json");
  const HttpReply reply = server.post("/v2/repository/models/m/load", "{}");
  EXPECT_EQ(reply.status, 500);
  EXPECT_FALSE(contains(reply.body, folder.string())) << reply.body;
  EXPECT_EQ(server.get("/v2/models/m/ready").status, 200) << "the model before remains";
}

TEST(ServeInference, StatisticsHaveTritonsFields) {
  const TestServer server;
  const Form form({png_of(noise_image(1)), png_of(noise_image(2)), png_of(noise_image(3))});
  EXPECT_EQ(server.post("/v1/classify", form.body, form.headers).status, 200);
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).status, 200);
  EXPECT_EQ(server.post("/v1/classify", "x", "Content-Type: image/png\r\n").status, 422);
  const json all = json::parse(server.get("/v2/models/stats").body)["model_stats"];
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["name"], "small");
  EXPECT_EQ(all[0]["version"], "1");
  EXPECT_EQ(all[0]["inference_count"], 4) << "images";
  EXPECT_GT(all[0]["last_inference"], 1'600'000'000'000) << "milliseconds since 1970";
  const json& stages = all[0]["inference_stats"];
  EXPECT_EQ(stages["success"]["count"], 2) << "requests";
  EXPECT_EQ(stages["fail"]["count"], 1);
  for (const char* stage : {"queue", "compute_input", "compute_infer", "compute_output"}) {
    EXPECT_EQ(stages[stage]["count"], 2) << stage;
    EXPECT_GT(stages[stage]["ns"], 0) << stage;
    EXPECT_LT(stages[stage]["ns"], stages["success"]["ns"]) << stage;
  }
  EXPECT_EQ(stages["cache_hit"], (json{{"count", 0}, {"ns", 0}}));
  int64_t images = 0, batches = 0;
  for (const json& batch : all[0]["batch_stats"]) {
    const auto count = batch["compute_infer"]["count"].get<int64_t>();
    images += count * batch["batch_size"].get<int64_t>();
    batches += count;
  }
  EXPECT_EQ(images, 4);
  EXPECT_EQ(all[0]["execution_count"], batches);
  EXPECT_EQ(all[1]["inference_count"], 0);
  EXPECT_EQ(all[1]["batch_stats"], json::array());
  for (const char* target : {"/v2/models/small/stats", "/v2/models/small/versions/1/stats"})
    EXPECT_EQ(json::parse(server.get(target).body)["model_stats"], json::array({all[0]})) << target;
  EXPECT_EQ(server.get("/v2/models/none/stats").status, 404);
  EXPECT_EQ(server.get("/v2/models/small/versions/2/stats").status, 404);
}

TEST(ServeInference, MetadataAndRepository) {
  serve::ServeOptions options = serve_options();
  options.model_control = true;
  const TestServer server(options);
  for (const char* target : {"/v2", "/v2/", "/v2/health/live", "/v2/health/ready", "/v2/models/small/ready",
                             "/v2/models/clip/versions/1/ready", "/v2/models/small", "/openapi.json"}) {
    const HttpReply reply = server.get(target);
    EXPECT_EQ(reply.status, 200) << target;
    EXPECT_TRUE(json::accept(reply.body)) << target;
  }
  EXPECT_EQ(server.get("/v2/models/none/ready").status, 404);
  EXPECT_EQ(server.get("/v2/models/small/versions/2").status, 404);
  EXPECT_EQ(server.post("/v2/repository/models/clip/unload", "{}").status, 200);
  EXPECT_EQ(server.get("/v2/models/clip/ready").status, 503);
  const json index = json::parse(server.post("/v2/repository/index", "{}").body);
  EXPECT_EQ(index.at(0)["state"], "READY");
  EXPECT_EQ(index.at(1)["state"], "UNAVAILABLE");
  EXPECT_EQ(server.post("/v2/repository/models/clip/load", "{}").status, 200);
  EXPECT_EQ(server.get("/v2/models/clip/ready").status, 200);
  EXPECT_EQ(TestServer().post("/v2/repository/models/clip/unload", "{}").status, 403) << "off by default";
}

TEST(ServeInference, AModelHasItsConfiguration) {
  const TestServer server;
  const json config = json::parse(server.get("/v2/models/small/config").body);
  EXPECT_EQ(config, json::parse(server.get("/v2/models/small/versions/1/config").body));
  EXPECT_EQ(config["name"], "small");
  EXPECT_EQ(config["max_batch_size"], 256);
  EXPECT_EQ(config["input"][0], (json{{"name", "images"}, {"data_type", "TYPE_STRING"}, {"dims", json::array()}}));
  EXPECT_EQ(config["input"][1], (json{{"name", "pixels"}, {"data_type", "TYPE_FP32"}, {"dims", {3, 32, 32}}}));
  EXPECT_EQ(config["output"][0]["dims"], json{10});
  EXPECT_EQ(server.get("/v2/models/none/config").status, 404);
  const std::string metrics = server.get("/metrics").body;
  for (const char* name : {"vitrail_build_info{version=\"", "process_resident_memory_bytes ", "process_open_fds ",
                           "process_cpu_seconds_total ", "process_start_time_seconds "})
    EXPECT_TRUE(contains(metrics, std::string("\n") + name)) << name;
}

}  // namespace
}  // namespace vitrail::testing
