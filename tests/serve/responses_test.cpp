// SPDX-License-Identifier: Apache-2.0
// The fields of responses and the texts of refusals, route by route.
#include <cstdio>
#include <fstream>

#include "tests/serve/serve_fixture.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/decode.h"
#include "vitrail/pipeline/attention_view.h"
#include "vitrail/sam/predictor.h"

namespace vitrail::testing {
namespace {

serve::ServeOptions three_models() {
  serve::ServeOptions options = serve_options();
  options.models.push_back({"sam", sam_fixture("padded_windows").model.string()});
  return options;
}

// The status and the text of an error.
std::string failure(const HttpReply& reply) {
  const json body = json::parse(reply.body, nullptr, false);
  const json error = body.is_object() ? body.value("error", json()) : json();
  const json text = error.is_object() ? error["message"] : error;
  return str(reply.status, " ", text.is_string() ? text.get<std::string>() : reply.body.substr(0, 200));
}

TEST(ServeResponses, HealthAndMetadata) {
  serve::Server loading(serve_options());
  const auto get = [](const serve::Server& server, const char* target) { return http(server.port(), "GET", target); };
  EXPECT_EQ(get(loading, "/livez").body, "{\"live\":true}\n");
  EXPECT_EQ(failure(get(loading, "/healthz")), "503 not ready: models are loading, or the server ends");
  EXPECT_EQ(get(loading, "/healthz").headers.at("retry-after"), "1");
  EXPECT_EQ(failure(http(loading.port(), "POST", "/v1/classify", "x")), "503 the models are loading: try again");
  EXPECT_FALSE(loading.ready());
  const TestServer server;
  EXPECT_TRUE(server.ready());
  EXPECT_EQ(server.get("/healthz").body, "{\"ready\":true}\n");
  EXPECT_EQ(server.get("/v2/health/ready").body, "{\"ready\":true}\n");
  EXPECT_EQ(server.get("/v2/health/live").body, "{\"live\":true}\n");
  EXPECT_EQ(server.get("/v2").body,
            "{\"name\":\"vitrail\",\"version\":\"1\",\"extensions\":[\"binary_tensor_data\",\"classification\",\"model_"
            "configuration\","
            "\"model_repository\",\"statistics\"]}\n");
  EXPECT_EQ(server.get("/metrics").headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(server.metric("vitrail_waiting_images"), 0);
  wait_until([&] { return server.metric("vitrail_connections") == 1; });  // its own
  const std::string text = server.get("/metrics").body;
  for (const char* help : {"# HELP vitrail_ready Whether requests are accepted.\n# TYPE vitrail_ready gauge\n",
                           "# HELP vitrail_waiting_images Images that wait for a batch.\n",
                           "# HELP vitrail_embedding_cache_bytes Kept image embeddings.\n",
                           "# HELP vitrail_connections Open connections.\n"})
    EXPECT_TRUE(contains(text, help)) << help;
}

TEST(ServeResponses, ModelsAreDescribed) {
  const TestServer server(three_models());
  const Model small(small_model());
  const DualModel clip(clip_model());
  const sam::Predictor segmenter(sam_fixture("padded_windows").model);
  const auto entry = [](const char* name) {
    return json{{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "vitrail"}};
  };
  const auto facts = [](const Model& model, int64_t classes, bool texts) {
    const auto& config = model.config();
    return json{{"architecture", config.architecture},
                {"image_size", config.vit.img_size},
                {"depth", config.vit.depth},
                {"heads", config.vit.num_heads},
                {"dim", config.vit.embed_dim},
                {"classes", classes},
                {"texts", texts},
                {"segments", false},
                {"precision", "fp32"},
                {"tasks", {"classify", "embed", "zeroshot", "attention", "pca", "explain"}}};
  };
  json first = entry("small"), second = entry("clip"), third = entry("sam");
  first.update(facts(small, 10, false));
  second.update(facts(clip.images(), 0, true));
  third.update(json{{"architecture", "sam"},
                    {"image_size", {segmenter.image_size(), segmenter.image_size()}},
                    {"segments", true},
                    {"precision", "fp32"},
                    {"tasks", {"segment", "explain"}}});
  EXPECT_EQ(json::parse(server.get("/v1/models").body),
            (json{{"object", "list"}, {"data", json::array({first, second, third})}}));

  const json images = json::parse(R"({"name": "images", "datatype": "BYTES", "shape": [-1]})");
  const auto metadata = [&](const char* name, const json& inputs, const json& outputs) {
    return json{{"name", name}, {"versions", {"1"}}, {"platform", "vitrail"}, {"inputs", inputs}, {"outputs", outputs}};
  };
  const auto tensor = [](const char* name, const json& shape) {
    return json{{"name", name}, {"datatype", "FP32"}, {"shape", shape}};
  };
  EXPECT_EQ(json::parse(server.get("/v2/models/small").body),
            metadata("small", {images, tensor("pixels", {-1, 3, 32, 32})},
                     {tensor("logits", {-1, 10}), tensor("probabilities", {-1, 10}), tensor("embedding", {-1, 18})}));
  const auto& vit = clip.images().config().vit;
  EXPECT_EQ(json::parse(server.get("/v2/models/clip/versions/1").body),
            metadata("clip", {images, tensor("pixels", {-1, vit.in_chans, vit.img_size[0], vit.img_size[1]})},
                     json::array({tensor("embedding", {-1, clip.embed_image(noise_image(1)).size(1)})})));
  const Shape embedding = segmenter.embedding_shape();
  EXPECT_EQ(json::parse(server.get("/v2/models/sam").body),
            metadata("sam", json::array({images}),
                     json::array({tensor("embedding", {-1, embedding[0], embedding[1], embedding[2]})})));
  EXPECT_EQ(server.get("/v2/models/clip/ready").body, "{\"name\":\"clip\",\"ready\":true}\n");
  EXPECT_EQ(failure(server.get("/v2/models/none")), "404 model: expected one of small, clip, sam, got 'none'");
  EXPECT_EQ(failure(server.get("/v2/models/small/versions/2/ready")), "404 version: expected 1, got '2'");
}

TEST(ServeResponses, ModelsAreLoadedAndUnloadedByName) {
  const auto folder = scratch_folder() / "model";
  std::filesystem::copy(small_model(), folder);
  serve::ServeOptions options = serve_options();
  options.models.push_back({"m", folder.string()});
  options.model_control = true;
  const TestServer server(options);
  const auto index = [&] { return server.post("/v2/repository/index", "").body; };
  EXPECT_EQ(index(), R"([{"name":"small","version":"1","state":"READY","reason":""},)"
                     R"({"name":"clip","version":"1","state":"READY","reason":""},)"
                     R"({"name":"m","version":"1","state":"READY","reason":""}])"
                     "\n");
  EXPECT_EQ(server.post("/v2/repository/models/small/unload", "").body, "{}\n");
  EXPECT_TRUE(index().starts_with(R"([{"name":"small","version":"1","state":"UNAVAILABLE","reason":"unloaded"},)"));
  EXPECT_EQ(failure(server.get("/v2/models/small/ready")), "503 the model 'small' is not loaded");
  EXPECT_EQ(json::parse(server.get("/v1/models").body)["data"].size(), 2u) << "those that are loaded";
  EXPECT_EQ(json::parse(server.get("/v2/models/stats").body)["model_stats"].size(), 2u);
  EXPECT_EQ(failure(server.post("/v2/repository/models/none/load", "")),
            "404 model: expected one of small, clip, m, got 'none'");
  std::filesystem::remove(folder / "config.json");
  const Warnings warnings;
  EXPECT_EQ(failure(server.post("/v2/repository/models/m/load", "")),
            "500 the model 'm' cannot be loaded: the server's warnings say why");
  EXPECT_TRUE(warnings.any("serve: m: "));
  for (const char* name : {"clip", "m"}) server.post(str("/v2/repository/models/", name, "/unload"), "");
  EXPECT_EQ(failure(server.post("/v1/classify", png_of(noise_image(1)))), "503 no model is loaded");
  EXPECT_EQ(failure(TestServer().post("/v2/repository/models/m/load", "")),
            "403 loading and unloading is off: start the server with --model-control");
}

TEST(ServeResponses, FilesOfThePageHaveTheirTypeAndPolicy) {
  const TestServer server;
  for (const auto& [target, type] :
       {std::pair("/", "text/html; charset=utf-8"), std::pair("/page/index.html", "text/html; charset=utf-8"),
        std::pair("/page/style.css", "text/css; charset=utf-8"),
        std::pair("/page/main.js", "text/javascript; charset=utf-8"), std::pair("/page/cat.jpg", "image/jpeg"),
        std::pair("/openapi.json", "application/json")}) {
    const HttpReply reply = server.get(target);
    EXPECT_EQ(reply.status, 200) << target;
    EXPECT_EQ(reply.headers.at("content-type"), type) << target;
    EXPECT_EQ(reply.headers.at("content-security-policy"),
              "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src "
              "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
    EXPECT_EQ(reply.headers.at("referrer-policy"), "no-referrer");
    EXPECT_EQ(reply.headers.at("cache-control"), "no-cache");
  }
  EXPECT_EQ(failure(server.get("/page/none.js")), "404 no such file");
  const std::string photograph = server.get("/page/cat.jpg").body;
  EXPECT_EQ(image::decode(std::as_bytes(std::span(photograph)), {}, "cat").width, 420);
}

TEST(ServeResponses, AModelHasANoteIfItsConfigurationHas) {
  const auto note_of = [](const std::string& entry) {
    const auto folder = scratch_folder() / "model";
    std::filesystem::remove_all(folder);
    std::filesystem::copy(small_model(), folder);
    const auto file = folder / "config.json";
    json config = json::parse(read_regular_text_file(file));
    config.update(json::parse(entry));
    std::ofstream(file) << config;
    serve::ServeOptions options;
    options.models = {{"m", folder.string()}};
    return json::parse(TestServer(options).get("/v1/models").body)["data"].at(0).value("note", json());
  };
  EXPECT_EQ(note_of(R"({"note": "A demonstration."})"), "A demonstration.");
  EXPECT_EQ(note_of(R"({"note": 1})"), json());
  EXPECT_EQ(note_of("{}"), json());
}

TEST(ServeResponses, RefusalsBeforeTheBody) {
  serve::ServeOptions options = serve_options();
  options.api_key = "key";
  const TestServer server(options);
  EXPECT_EQ(failure(server.get("/none")), "404 no such route: GET /openapi.json lists them");
  EXPECT_EQ(failure(server.get("/v1/classify")), "405 expected the method POST");
  EXPECT_EQ(failure(server.post("/livez", "")), "405 expected the method GET");
  EXPECT_EQ(server.post("/livez", "").headers.at("allow"), "GET");
  EXPECT_EQ(failure(server.post("/v1/classify", "x")), "401 expected the header Authorization: Bearer KEY");
  EXPECT_EQ(failure(server.get("/v1/models")), "401 expected the header Authorization: Bearer KEY");
  EXPECT_EQ(server.get("/").status, 200);
  const HttpReply refused = server.post("/v1/embeddings", "{}");
  EXPECT_EQ(json::parse(refused.body)["error"]["type"], "authentication_error");
  EXPECT_EQ(failure(server.get("/%zz")), "400 the target has a damaged % escape");
  const auto count = [&](const std::string& labels) {
    const std::string text = http(server.port(), "GET", "/metrics", {}, "Authorization: Bearer key\r\n").body;
    return contains(text, "vitrail_requests_total{" + labels + "} 1\n");
  };
  EXPECT_TRUE(count(R"(route="classify",status="401")"));
  EXPECT_TRUE(count(R"(route="classify",status="405")"));
  EXPECT_TRUE(count(R"(route="embeddings",status="401")"));
}

TEST(ServeResponses, RefusalsOfImageRoutes) {
  const TestServer server(three_models());
  const std::string png = png_of(noise_image(1));
  const auto post = [&](const std::string& target) { return failure(server.post(target, png)); };
  EXPECT_EQ(post("/v1/classify?top=0"), "400 top: expected an integer from 1 to 1048576, got '0'");
  EXPECT_EQ(post("/v1/zeroshot?model=clip&labels=a,b&top=1048577"),
            "400 top: expected an integer from 1 to 1048576, got '1048577'");
  EXPECT_EQ(server.post("/v1/classify?top=1048576", png).status, 200);
  EXPECT_EQ(post("/v1/embed?layer=2"), "400 layer: expected a block index from -2 to 1, got 2");
  EXPECT_EQ(post("/v1/embed?layer=-3"), "400 layer: expected a block index from -2 to 1, got -3");
  EXPECT_EQ(post("/v1/embed?tokens=grid"), "400 tokens: expected pooled, cls, patch or all, got 'grid'");
  EXPECT_EQ(post("/v1/zeroshot?labels=a,b"), "400 model: expected one with a text tower (CLIP, SigLIP), got small");
  EXPECT_EQ(post("/v1/zeroshot?model=clip"), "400 labels: expected names of the classes: \"cat,dog\", got none");
  EXPECT_EQ(post("/v1/attention?query=1,2,3"), "400 query: expected X,Y in pixels, got 3 values");
  EXPECT_EQ(post("/v1/attention?head=2"), "400 head: expected mean, all, or a head index from 0 to 1, got '2'");
  EXPECT_EQ(post("/v1/attention?layer=x"),
            "400 layer: expected all, or a block index from 0 to 1 (or negative, from the end), got 'x'");
  EXPECT_EQ(post("/v1/zeroshot?model=clip&labels=a,,b"),
            "400 labels: expected names with commas between them, got \"a,,b\"");
  EXPECT_EQ(post("/v1/pca?invert"), "400 invert: expected foreground first or a number beside it, got none");
  EXPECT_EQ(post("/v1/pca?foreground=2"), "400 foreground: expected none, first or a number from 0 to 1, got 2");
  EXPECT_EQ(post("/v1/pca?layer=2"), "400 layer: expected an integer from -2 to 1, got '2'");
  EXPECT_EQ(post("/v1/pca?opacity=1.5"), "400 opacity: expected a number from 0 to 1, got '1.5'");
  EXPECT_EQ(post("/v1/segment?point=1,2&opacity=-1"), "400 opacity: expected a number from 0 to 1, got '-1'");
  EXPECT_EQ(post("/v1/segment?model=small&point=1,2"),
            "400 model: expected one of Segment Anything, or a semantic segmenter, or CLIPSeg, got 'small'");
  EXPECT_EQ(post("/v1/classify?model=sam"), "400 model: expected a Vision Transformer or a Hiera, got 'sam'");
  EXPECT_EQ(failure(server.post("/v1/classify", "text", "Content-Type: text/plain\r\n")),
            "415 Content-Type: expected an image, multipart/form-data or application/json, got text/plain");
  EXPECT_EQ(failure(server.post("/v1/classify", png, "Content-Encoding: br\r\n")),
            "415 Content-Encoding: expected gzip, deflate or identity");
  EXPECT_EQ(failure(server.post("/v1/classify", "")), "400 an empty body: send an image, a form or JSON");
}

TEST(ServeResponses, ZeroShotTakesLabelsOneByOneOrTogether) {
  const TestServer server;
  const std::string png = png_of(noise_image(6));
  const auto post = [&](const std::string& query) { return server.post("/v1/zeroshot?model=clip&" + query, png).body; };
  const std::string together = post("labels=cat,%20dog,bird"), single = post("labels=cat&labels=dog&labels=bird");
  EXPECT_EQ(together, single);
  EXPECT_EQ(json::parse(together)["predictions"].size(), 3u);
  EXPECT_EQ(together, post("labels=cat,dog,bird&template=%7B%7D")) << "the label itself";
  EXPECT_EQ(together, post("labels=cat,dog,bird&top=5"));
  EXPECT_EQ(json::parse(post("labels=cat,dog,bird&top=2"))["predictions"].size(), 2u);
  EXPECT_EQ(json::parse(post("labels=a,b,c,d,e,f,g"))["predictions"].size(), 5u);
  EXPECT_EQ(json::parse(post("labels=a,b&labels=c"))["predictions"].size(), 2u) << "a comma in a label of several";
  EXPECT_NE(together, post("labels=cat,dog,bird&template=a+%7B%7D&template=the+%7B%7D"));
}

TEST(ServeResponses, EmbeddingsHaveOpenAisFields) {
  const TestServer server;
  const std::string uri = data_uri(png_of(noise_image(1)));
  const auto post = [&](const json& body) { return server.post("/v1/embeddings", body.dump(), kJson); };
  const json reply = json::parse(post({{"model", "clip"}, {"input", uri}}).body);
  EXPECT_EQ(reply["object"], "list");
  EXPECT_EQ(reply["model"], "clip");
  ASSERT_EQ(reply["data"].size(), 1u);
  EXPECT_EQ(reply["data"][0]["object"], "embedding");
  EXPECT_EQ(reply["data"][0]["index"], 0);
  EXPECT_EQ(reply.size(), 4u);
  EXPECT_EQ(json::parse(post({{"input", uri}}).body)["model"], "small") << "the first model";
  EXPECT_EQ(json::parse(post({{"model", ""}, {"input", uri}}).body)["model"], "small");
  EXPECT_EQ(failure(post({{"model", "clip"}, {"input", json::array()}})),
            "400 input: expected at least one input, got none");
  EXPECT_EQ(failure(post({{"model", "clip"}, {"input", {"a", 1}}})),
            "400 input 1: expected a text, a data URI, {\"text\": …} or {\"image\": …}, got number");
  EXPECT_EQ(failure(post({{"model", "clip"}, {"input", "a"}, {"modality", "audio"}})),
            "400 modality: expected text or image, got 'audio'");
  EXPECT_EQ(failure(post({{"model", "clip"}, {"input", "a"}, {"encoding_format", "hex"}})),
            "400 encoding_format: expected float or base64, got 'hex'");
  EXPECT_EQ(failure(post({{"model", "clip"}, {"input", "a"}, {"dimensions", 3}})),
            "400 dimensions: expected 10, the size of the model's embeddings, got 3");
  EXPECT_EQ(failure(post({{"model", "small"}, {"input", "a"}})),
            "400 input: expected images as data URIs, because the model 'small' takes no texts, got a text");
  EXPECT_EQ(failure(post({{"model", "clip"}, {"input", {"a", "data:image/png;base64,QUI="}}})).substr(0, 4), "422 ");
  EXPECT_EQ(failure(post({{"model", "clip"}, {"input", json::array_t(257, "a")}})),
            "413 at most 256 inputs in a request, got 257");
  // "data:" begins a text if all inputs are texts, and {"image_url"} is an image.
  EXPECT_EQ(post({{"model", "clip"}, {"input", json::array({json{{"text", "data:x"}}})}}).status, 200);
  EXPECT_EQ(post({{"model", "clip"}, {"input", json::array({json{{"image_url", uri}}})}}).status, 200);
}

json input_of(const std::string& name, const std::string& datatype, const json& shape, const json& data) {
  return {{"name", name}, {"datatype", datatype}, {"shape", shape}, {"data", data}};
}

TEST(ServeResponses, OutputsOfAnInferenceAreInTheirOrder) {
  const TestServer server;
  const Model model(small_model());
  const image::Image photo = noise_image(4);
  const std::vector<Prediction> best = model.classify(photo, 10);
  json body{{"inputs", json::array({input_of("images", "BYTES", {1}, {base64(png_of(photo))})})}};
  const json reply = json::parse(server.post("/v2/models/small/infer", body.dump(), kJson).body);
  EXPECT_EQ(reply["model_name"], "small");
  EXPECT_EQ(reply["model_version"], "1");
  EXPECT_FALSE(reply.contains("id"));
  ASSERT_EQ(reply["outputs"].size(), 3u);
  const char* const names[] = {"logits", "probabilities", "embedding"};
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(reply["outputs"][i]["name"], names[i]);
  EXPECT_EQ(reply["outputs"][0]["shape"], (json{1, 10}));
  EXPECT_EQ(reply["outputs"][2]["shape"], (json{1, 18}));
  const auto probabilities = reply["outputs"][1]["data"].get<std::vector<float>>();
  ASSERT_EQ(probabilities.size(), 10u);
  for (const Prediction& p : best) EXPECT_EQ(probabilities[static_cast<size_t>(p.index)], p.probability);

  body["outputs"] = json::parse(R"([{"name": "logits", "parameters": {"classification": 2}},
                                    {"name": "probabilities", "parameters": {"classification": 100}},
                                    {"name": "embedding"}])");
  const json classes = json::parse(server.post("/v2/models/small/infer", body.dump(), kJson).body)["outputs"];
  EXPECT_EQ(classes.at(0)["shape"], (json{1, 2}));
  EXPECT_EQ(classes.at(1)["shape"], (json{1, 10})) << "all there are";
  EXPECT_EQ(classes.at(1)["datatype"], "BYTES");
  EXPECT_EQ(classes.at(2)["datatype"], "FP32");
  const auto logits = reply["outputs"][0]["data"].get<std::vector<float>>();
  for (size_t i = 0; i < 10; ++i) {
    const auto text_of = [&](float value) {
      char text[32];
      std::snprintf(text, sizeof text, "%f", static_cast<double>(value));
      std::string all = str(text, ":", best[i].index);
      if (!model.class_names().empty()) all += ":" + model.class_name(best[i].index);
      return all;
    };
    EXPECT_EQ(classes.at(1)["data"].at(i), text_of(best[i].probability));
    if (i < 2) {
      EXPECT_EQ(classes.at(0)["data"].at(i), text_of(logits[static_cast<size_t>(best[i].index)]));
    }
  }
}

TEST(ServeResponses, RefusalsOfInferences) {
  const TestServer server(three_models());
  const json image = input_of("images", "BYTES", {1}, {base64(png_of(noise_image(1)))});
  const auto post = [&](const std::string& model, const json& input, const json& outputs = json()) {
    json body{{"inputs", json::array({input})}};
    if (!outputs.is_null()) body["outputs"] = outputs;
    return failure(server.post("/v2/models/" + model + "/infer", body.dump(), kJson));
  };
  EXPECT_EQ(post("small", image, json::parse(R"([{"name": "x"}])")),
            "400 outputs: expected one of logits, probabilities, embedding, got 'x'");
  EXPECT_EQ(post("clip", image, json::parse(R"([{"name": "logits"}])")),
            "400 outputs: expected one of embedding, got 'logits'");
  EXPECT_EQ(post("small", image, json::parse(R"([{"name": "embedding", "parameters": {"classification": 1}}])")),
            "400 classification: expected the output logits or probabilities, got embedding");
  EXPECT_EQ(post("small", input_of("images", "FP32", {1}, {1})),
            "400 inputs: expected images of BYTES or pixels of FP32, got 'images' of FP32");
  EXPECT_EQ(post("small", input_of("pixels", "BYTES", {1}, {""})),
            "400 inputs: expected images of BYTES or pixels of FP32, got 'pixels' of BYTES");
  EXPECT_EQ(post("sam", input_of("pixels", "FP32", {1, 1, 1, 1}, {1})),
            "400 inputs: expected images of BYTES for Segment Anything, got pixels");
  EXPECT_EQ(post("small", input_of("pixels", "FP32", {1, 2}, {1, 2})),
            "400 pixels: expected a shape [n, 3, height, width], got 2 sizes, or others");
  EXPECT_EQ(post("small", input_of("pixels", "FP32", {1, 2, 1, 1}, {1, 2})),
            "400 pixels: expected a shape [n, 3, height, width], got 4 sizes, or others");
  EXPECT_EQ(post("small", input_of("pixels", "FP32", {1, 3, 0, 1}, json::array())),
            "400 pixels: expected a shape [n, 3, height, width], got 4 sizes, or others");
  EXPECT_EQ(post("small", input_of("pixels", "FP32", {1, 3, 1, 0}, json::array())),
            "400 pixels: expected a shape [n, 3, height, width], got 4 sizes, or others");
  EXPECT_EQ(post("small", input_of("images", "BYTES", {1}, {"QUI="})).substr(0, 12), "400 image 0:");
}

TEST(ServeResponses, ConnectionsAboveTheLimitAreToldWhy) {
  serve::ServeOptions options = serve_options();
  options.limits.connections = 1;
  const TestServer server(options);
  HttpConnection first(server.port());
  first.send("POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // its header arrives
  const HttpReply reply = server.get("/metrics");
  EXPECT_EQ(failure(reply), "503 too many connections");
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
}

TEST(ServeResponses, AnAddressInUseIsNamed) {
  serve::ServeOptions options = serve_options();
  const serve::Server first(options);
  options.port = first.port();
  EXPECT_EQ(error_of([&] { serve::Server{options}; }),
            str("serve: cannot listen on 127.0.0.1 port ", first.port(), ": Address already in use"));
  options.unix_path = (scratch_folder() / "no" / "socket").string();
  EXPECT_EQ(error_of([&] { serve::Server{options}; }),
            "serve: cannot listen on " + options.unix_path + ": No such file or directory");
  options.unix_path.clear();
  options.host = "example.org";
  EXPECT_EQ(error_of([&] { serve::Server{options}; }),
            "--host: expected an IPv4 or IPv6 address or localhost: 127.0.0.1, got 'example.org'");
  options.host = "10.0.0.1";
  EXPECT_EQ(error_of([&] { serve::Server{options}; }),
            "--host: expected an API key (--api-key-file) or --public for an address that other machines can reach, "
            "got '10.0.0.1' without");
}

// What the client sends, and why it is refused; the connection is closed.
TEST(ServeResponses, RefusalsOfTheProtocolNameTheLimit) {
  serve::ServeOptions options = serve_options();
  options.limits.body_bytes = 1'000;
  options.limits.headers = 5;
  options.limits.header_bytes = 300;
  options.limits.chunks = 2;
  options.limits.header_seconds = 0.2;
  const TestServer server(options);
  const auto refusal = [&](const std::string& bytes) {
    HttpConnection connection(server.port());
    connection.send(bytes);
    const HttpReply reply = connection.receive();
    EXPECT_EQ(reply.headers.at("connection"), "close") << bytes;
    return failure(reply);
  };
  const std::string post = "POST /v1/classify HTTP/1.1\r\nHost: localhost\r\n",
                    chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(refusal(post + "X: " + std::string(300, 'x') + "\r\n\r\n"), "431 the header exceeds 300 bytes");
  EXPECT_EQ(refusal(post + "A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\n\r\n"), "431 more than 5 headers");
  EXPECT_EQ(refusal(post + "Content-Length: 1001\r\n\r\n"), "413 the body exceeds 1000 bytes");
  EXPECT_EQ(refusal(chunked + "1\r\na\r\n1\r\na\r\n1\r\na\r\n"), "413 the body has more than 2 chunks");
  EXPECT_EQ(refusal(post + "Content-Length: x\r\n\r\n").substr(0, 20), "400 malformed HTTP: ");
  EXPECT_EQ(refusal(post + "Content-Length: \r\n\r\n").substr(0, 20), "400 malformed HTTP: ");
  EXPECT_EQ(refusal(post + "Transfer-Encoding: gzip\r\n\r\n"), "400 malformed HTTP: Transfer-Encoding is not chunked");
  EXPECT_EQ(refusal(post + "X: a\r\n b\r\n\r\n"), "400 malformed HTTP: a header of several lines");
  EXPECT_EQ(refusal(post + "X: a\r\n\tb\r\n\r\n"), "400 malformed HTTP: a header of several lines");
  EXPECT_EQ(refusal("POST /v1/classify HTTP/1.1\r\nHo"), "408 the request did not arrive within the time limit");
}

TEST(ServeResponses, ARefusalAtTheHeaderKeepsAConnectionWithoutABody) {
  const TestServer server;
  HttpConnection connection(server.port());
  for (int i = 0; i < 2; ++i) {
    connection.send("POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(connection.receive().status, 404) << i;
  }
  connection.send("POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc");
  const HttpReply reply = connection.receive();
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.headers.at("connection"), "close") << "its body is not read";
}

TEST(ServeResponses, AttentionHasTheLabelsOfThePipeline) {
  const TestServer server;
  const Model model(small_model());
  const image::Image photo = noise_image(3);
  const std::pair<std::string, pipeline::AttentionOptions> cases[] = {
      {"", {}},
      {"?layer=all&head=all", {.layer = "all", .head = "all"}},
      {"?query=20,18&layer=0&head=1", {.layer = "0", .head = "1", .query = {20, 18}}},
      {"?rollout", {.rollout = true}}};
  for (const auto& [query, options] : cases) {
    const std::vector<Tensor> weights = model.run({{photo}}, pipeline::attention_request(model, options));
    const pipeline::AttentionMaps want = pipeline::attention_maps(
        model, options,
        {.name = "-", .width = 40, .height = 36, .size = output_size(model.transform(), 40, 36), .weights = weights});
    const json object = json::parse(server.post("/v1/attention" + query, png_of(photo)).body);
    EXPECT_EQ(object["path"], "-");
    EXPECT_EQ(object["attending"], want.attending) << query;
    ASSERT_EQ(object["maps"].size(), want.maps.size()) << query;
    for (size_t i = 0; i < want.maps.size(); ++i) {
      EXPECT_EQ(object["maps"][i]["label"], want.maps[i].label) << query;
      const Tensor map = want.maps[i].map.contiguous();
      EXPECT_EQ(object["maps"][i]["values"].get<std::vector<float>>(),
                std::vector<float>(map.data<float>(), map.data<float>() + map.numel()))
          << query << i;
    }
  }
  const json maps = json::parse(server.post("/v1/pca", png_of(photo)).body);
  EXPECT_EQ(maps["path"], "-");
  EXPECT_EQ(maps["shape"], (json{4, 4, 3}));
  EXPECT_FALSE(maps.contains("scores"));
}

TEST(ServeResponses, ResultsThatAreTooLargeAreNotComputed) {
  const TestServer server;
  const std::string uri = data_uri(png_of(noise_image(1)));
  const std::string refusal = "413 the results have more than 16777216 values: send fewer images, or ask for less";
  const json labels(257, "a"), templates(256, "a {}");
  EXPECT_EQ(failure(server.post(
                "/v1/zeroshot",
                json{{"image", uri}, {"model", "clip"}, {"labels", labels}, {"template", templates}}.dump(), kJson)),
            refusal);
  EXPECT_EQ(server.metric(R"(vitrail_images_total{result="success"})"), 0);
}

}  // namespace
}  // namespace vitrail::testing
