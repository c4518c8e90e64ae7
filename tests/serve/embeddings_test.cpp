// SPDX-License-Identifier: Apache-2.0
// Inputs of /v1/embeddings: their order, their forms and their number.
#include <gtest/gtest.h>

#include "tests/serve/serve_fixture.h"

namespace vitrail::testing {
namespace {

std::string noise_uri(uint64_t seed) { return data_uri(png_of(noise_image(seed))); }

TEST(ServeEmbeddings, MixedInputsKeepTheirOrderAndCountTheirTokens) {
  const TestServer server;
  const DualModel model(clip_model());
  const json input{"a cat", noise_uri(1), {{"text", "a dog on snow"}}, {{"image", noise_uri(2)}}};
  const json reply =
      json::parse(server.post("/v1/embeddings", json{{"model", "clip"}, {"input", input}}.dump(), kJson).body);
  ASSERT_EQ(reply["data"].size(), 4U) << reply;
  int64_t tokens = 0;
  const Tensor texts = model.embed_texts({"a cat", "a dog on snow"}, true, &tokens);
  const image::Image photos[] = {noise_image(1), noise_image(2)};
  const Tensor images = model.embed_images(std::vector<image::ImageView>{photos[0], photos[1]});
  for (int64_t i = 0; i < 4; ++i) {
    const json& item = reply["data"][static_cast<size_t>(i)];
    EXPECT_EQ(item["index"], i);
    const auto got = item["embedding"].get<std::vector<float>>();
    const auto want = floats((i % 2 == 0 ? texts : images).select(0, i / 2));
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-5) << i;
  }
  const auto& vit = model.images().config().vit;
  const int64_t patches = vit.img_size[0] / vit.patch_size[0] * (vit.img_size[1] / vit.patch_size[1]);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], tokens + 2 * (patches + 1));
  EXPECT_EQ(reply["usage"]["total_tokens"], reply["usage"]["prompt_tokens"]);
}

TEST(ServeEmbeddings, ARequestHasAtMostTheLimitsInputs) {
  serve::ServeOptions options = serve_options();
  options.limits.images = 3;
  const TestServer server(options);
  const auto status = [&](const json& input) {
    return server.post("/v1/embeddings", json{{"model", "clip"}, {"input", input}}.dump(), kJson).status;
  };
  EXPECT_EQ(status({"a", "b", "c"}), 200);
  EXPECT_EQ(status({"a", "b", "c", "d"}), 413);
  EXPECT_EQ(status({noise_uri(1), "b", noise_uri(2)}), 200);
  EXPECT_EQ(status(json::array()), 400);
}

TEST(ServeEmbeddings, DimensionsAreThoseOfTheModel) {
  const TestServer server;
  for (const auto& [model, size, other] : {std::tuple("clip", 10, 18), std::tuple("small", 18, 10)}) {
    const auto post = [&, name = model](const json& dimensions) {
      const json body{{"model", name}, {"input", noise_uri(1)}, {"dimensions", dimensions}};
      return server.post("/v1/embeddings", body.dump(), kJson);
    };
    const HttpReply reply = post(size);
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(json::parse(reply.body)["data"][0]["embedding"].size(), static_cast<size_t>(size));
    EXPECT_EQ(post(other).status, 400) << model;
    EXPECT_EQ(post(std::to_string(size)).status, 400) << "a text";
  }
}

TEST(ServeEmbeddings, InputsMayBeAsOpenAisClientsSendThem) {
  const TestServer server;
  const auto embedding = [&](const json& input) {
    const HttpReply reply = server.post("/v1/embeddings", json{{"model", "clip"}, {"input", input}}.dump(), kJson);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body)["data"][0]["embedding"];
  };
  const std::string png = png_of(noise_image(1)), uri = data_uri(png);
  const json image = embedding(uri), text = embedding("a cat");
  std::string broken = base64(png);
  for (size_t at = 76; at < broken.size(); at += 78) broken.insert(at, "\r\n");
  for (const json& input :
       {json{{"type", "image_url"}, {"image_url", {{"url", uri}, {"detail", "low"}}}}, json{{"image_url", uri}},
        json{{"image", base64(png)}}, json{{"image", broken}}, json{{"type", "image"}, {"image", uri}}})
    EXPECT_EQ(embedding(json::array({input})), image) << input;
  EXPECT_EQ(embedding(json::array({json{{"type", "text"}, {"text", "a cat"}}})), text);
  const std::vector<int64_t> tokens = DualModel(clip_model()).token_ids("a cat", "test");
  EXPECT_EQ(embedding(tokens), text);
  EXPECT_EQ(embedding(json::array({tokens})), text);
}

// Tokens of another tokenizer would be another text.
TEST(ServeEmbeddings, TokensAreThoseOfTheModel) {
  const TestServer server;
  const auto status = [&](const json& input) {
    return server.post("/v1/embeddings", json{{"model", "clip"}, {"input", input}}.dump(), kJson).status;
  };
  const std::vector<int64_t> tokens = DualModel(clip_model()).token_ids("a cat", "test");
  EXPECT_EQ(status(tokens), 200);
  EXPECT_EQ(status(std::vector<int64_t>(tokens.begin(), tokens.end() - 1)), 400) << "no end";
  for (const int64_t other : {int64_t{-1}, int64_t{1} << 40}) {
    std::vector<int64_t> wrong = tokens;
    wrong[1] = other;
    EXPECT_EQ(status(wrong), 400) << other;
  }
  EXPECT_EQ(status(std::vector<int64_t>(1000, tokens.back())), 400);
}

TEST(ServeEmbeddings, InputsOfOtherFormsAreErrors) {
  const TestServer server;
  const auto status = [&](const json& body) { return server.post("/v1/embeddings", body.dump(), kJson).status; };
  for (const json& input : {json(1), json(nullptr), json{{"audio", "a"}}, json{{"text", 1}},
                            json{{"text", "a"}, {"image", "b"}}, json{{"image", "a cat"}}, json::array({1})}) {
    EXPECT_EQ(status({{"model", "clip"}, {"input", input}}), 400) << input;
  }
  EXPECT_EQ(status({{"model", "clip"}}), 400);
  EXPECT_EQ(status({{"model", "clip"}, {"input", "a"}, {"encoding_format", "hex"}}), 400);
  EXPECT_EQ(status({{"model", "clip"}, {"input", "a"}, {"dimensions", 8}}), 400);
  EXPECT_EQ(status({{"model", "clip"}, {"input", "a"}, {"modality", "audio"}}), 400);
  EXPECT_EQ(status({{"model", "clip"}, {"input", "a"}, {"modality", "image"}}), 400);  // no data URI
  EXPECT_EQ(status({{"model", "clip"}, {"input", noise_uri(1)}, {"modality", "image"}}), 200);
  EXPECT_EQ(status({{"model", "small"}, {"input", "a"}}), 400);
  EXPECT_EQ(status({{"model", "small"}, {"input", noise_uri(1)}}), 200);
}

}  // namespace
}  // namespace vitrail::testing
