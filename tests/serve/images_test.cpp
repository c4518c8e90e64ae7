// SPDX-License-Identifier: Apache-2.0
// The routes that take images give the values of the library, bit for bit, and of the command line.
#include <fstream>

#include "tests/image/support.h"
#include "tests/serve/serve_fixture.h"
#include "tests/support/program.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::testing {
namespace {

TEST(Serve, ClassifyIsTheCommandLinesJson) {
  const TestServer server;
  const auto folder = scratch_folder();
  for (const uint64_t seed : {1, 2, 3}) {
    const std::string png = png_of(noise_image(seed));
    std::ofstream(folder / "a.png", std::ios::binary) << png;
    const HttpReply reply = server.post("/v1/classify?top=3", png);
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.headers.at("content-type"), "application/json");
    const ProgramResult program =
        run_program({"classify", "-m", small_model(), "-", "--top", "3", "--format", "json"}, png);
    EXPECT_EQ(reply.body, program.out);
  }
}

TEST(Serve, EachFormOfBodyGivesTheSamePredictions) {
  const TestServer server;
  const std::string png = png_of(noise_image(1)), other = png_of(noise_image(2));
  const json want = json::parse(server.post("/v1/classify?top=2", png).body)["predictions"];
  ASSERT_EQ(want.size(), 2u);
  const Form form({png, other}, {{"top", "2"}});
  const json of_form = json::parse(server.post("/v1/classify", form.body, form.headers).body);
  ASSERT_EQ(of_form.size(), 2u);
  EXPECT_EQ(of_form[0]["path"], "0.png");
  EXPECT_EQ(of_form[0]["predictions"], want);
  EXPECT_NE(of_form[1]["predictions"], want);
  const json of_list =
      json::parse(server.post("/v1/classify", json{{"images", {data_uri(png)}}, {"top", 2}}.dump(), kJson).body);
  EXPECT_EQ(of_list.at(0)["predictions"], want);
  const json of_one = json::parse(server.post("/v1/classify?top=2", json{{"image", data_uri(png)}}.dump(), kJson).body);
  EXPECT_EQ(of_one["predictions"], want);
}

// A request without an option is one with its documented default, and not one with another value.
TEST(Serve, OptionsHaveTheirDefaults) {
  const TestServer server;
  const std::string png = png_of(noise_image(1));
  struct Case {
    const char *route, *value, *other;
  };
  for (const auto& [route, value, other] : {Case{"/v1/classify", "top=5", "top=4"},
                                            {"/v1/classify", "exif=false", "top=1"},
                                            {"/v1/embed", "tokens=pooled", "tokens=patch"},
                                            {"/v1/embed", "layer=-1", "layer=0"},
                                            {"/v1/embed", "normalize=false", "normalize"},
                                            {"/v1/embed", "no-norm=false", "no-norm"},
                                            {"/v1/attention", "layer=-1", "layer=0"},
                                            {"/v1/attention", "head=mean", "head=0"},
                                            {"/v1/attention", "rollout=false", "rollout"},
                                            {"/v1/pca", "layer=-1", "layer=0"},
                                            {"/v1/pca", "opacity=0.75", "opacity=0.5"},
                                            {"/v1/pca", "foreground=none", "foreground=first"},
                                            {"/v1/pca", "no-norm=false", "no-norm"},
                                            {"/v1/pca", "raw=false", "raw"}}) {
    const std::string target = route, headers = contains(value, "opacity") ? "Accept: image/png\r\n" : "";
    const std::string plain = server.post(target, png, headers).body;
    const HttpReply same = server.post(target + "?" + value, png, headers),
                    another = server.post(target + "?" + other, png, headers);
    EXPECT_EQ(same.status, 200) << route << value << same.body;
    EXPECT_EQ(another.status, 200) << route << other << another.body;
    EXPECT_EQ(same.body, plain) << route << " " << value;
    EXPECT_NE(another.body, plain) << route << " " << other;
  }
}

// RFC 7578 leaves it open; browsers write %22, curl and Python's clients a backslash before the quote.
TEST(Serve, ANameInAFormMayHaveEscapedQuotes) {
  const TestServer server;
  const std::string disposition = R"(Content-Disposition: form-data; name="image"; filename="a \"b\" \\ c.png")";
  const std::string body = "--edge\r\n" + disposition + "\r\n\r\n" + png_of(noise_image(1)) + "\r\n--edge--\r\n";
  const json result =
      json::parse(server.post("/v1/classify", body, "Content-Type: multipart/form-data; boundary=edge\r\n").body);
  EXPECT_EQ((result.is_array() ? result.at(0) : result)["path"], R"(a "b" \ c.png)") << result;
}

TEST(Serve, ABadImageIsOneErrorAmongTheResults) {
  const TestServer server;
  std::vector<std::string> files;
  for (uint64_t i = 0; i < 32; ++i) files.push_back(i == 7 ? "not an image" : png_of(noise_image(i)));
  const Form form(files);
  const HttpReply reply = server.post("/v1/classify", form.body, form.headers);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json list = json::parse(reply.body);
  ASSERT_EQ(list.size(), 32u);
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].contains("error"), i == 7) << list[i];
    EXPECT_EQ(list[i].contains("predictions"), i != 7) << list[i];
  }
  EXPECT_TRUE(contains(list[7]["error"], "7.png")) << list[7];
  EXPECT_EQ(server.post("/v1/classify", files[7], "Content-Type: image/png\r\n").status, 422);
  EXPECT_EQ(server.post("/v1/classify", files[0]).status, 200) << "the server survives";
}

TEST(Serve, EmbedGivesTheLibrarysFeatures) {
  const TestServer server;
  const Model model(small_model());
  const image::Image photo = noise_image(5);
  const std::string png = png_of(photo);
  const auto check = [&](const std::string& query, const infer::FeatureOptions& options) {
    const HttpReply reply = server.post("/v1/embed" + query, png);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json object = json::parse(reply.body);
    const Tensor want = model.embed(photo, options);
    EXPECT_EQ(object["embedding"].get<std::vector<float>>(), floats(want)) << query;
    EXPECT_EQ(object["shape"].size(), static_cast<size_t>(want.rank())) << query;
    const image::Region region = visible_region(model.transform(), photo.width, photo.height);
    const json covered{{"width", photo.width}, {"height", photo.height}, {"left", region.left},
                       {"top", region.top},    {"right", region.right},  {"bottom", region.bottom}};
    EXPECT_EQ(object.value("region", json()), options.tokens == infer::Tokens::grid ? covered : json()) << query;
  };
  check("", {});
  check("?tokens=cls&layer=0", {.tokens = infer::Tokens::cls, .layers = {0}});
  check("?tokens=patch&no-norm", {.tokens = infer::Tokens::grid, .final_norm = false});
  check("?normalize=true", {.l2_normalize = true});
  check("?layer=0,-1", {.layers = {0, -1}});
  check("?tokens=all&layer=-2", {.tokens = infer::Tokens::all, .layers = {-2}});
}

// Clients may try again: what they sent is in order.
TEST(Serve, AModelFileThatHasChangedIsAFaultOfTheServer) {
  const Warnings warnings;
  const serve::ServeOptions options = with_copied_models();
  const TestServer server(options);
  for (const serve::ModelSource& source : options.models) change_weights(source);
  const std::string png = png_of(noise_image(1));
  for (const char* target : {"/v1/classify", "/v1/embed", "/v1/attention", "/v1/attention?format=png", "/v1/pca",
                             "/v1/pca?format=png", "/v1/zeroshot?model=clip&labels=a,b"}) {
    const HttpReply reply = server.post(target, png);
    EXPECT_EQ(reply.status, 503) << target;
    EXPECT_TRUE(contains(reply.body, "a file of a model has changed: reload the models")) << reply.body;
    EXPECT_EQ(reply.headers.count("retry-after"), 1U) << target;
  }
  EXPECT_EQ(server.post("/v2/models/small/infer", png, "Inference-Header-Content-Length: 0\r\n").status, 503);
  const json body{{"input", data_uri(png)}};
  EXPECT_EQ(server.post("/v1/embeddings", body.dump(), kJson).status, 503);
  const Form both({png, "not an image"}), bad({"not an image"});
  EXPECT_EQ(server.post("/v1/classify", both.body, both.headers).status, 503) << "one would have succeeded";
  EXPECT_EQ(server.post("/v1/classify", bad.body, bad.headers).status, 422);
}

TEST(Serve, ZeroShotGivesTheLibrarysProbabilities) {
  const TestServer server;
  const DualModel model(clip_model());
  const image::Image photo = noise_image(6);
  const Tensor labels = model.embed_labels({"cat", "dog"}, {"a photo of a {}"});
  const Tensor want = model.probabilities(model.logits(model.embed_image(photo), labels));
  const HttpReply reply =
      server.post("/v1/zeroshot?model=clip&labels=cat,dog&template=a+photo+of+a+%7B%7D", png_of(photo));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json object = json::parse(reply.body);
  for (const json& prediction : object["predictions"]) {
    EXPECT_EQ(prediction["probability"].get<float>(), want.data<float>()[prediction["index"].get<int>()]);
  }
}

TEST(Serve, OptionsAreChecked) {
  const TestServer server;
  const std::string png = png_of(noise_image(1));
  const auto error_of_target = [&](const std::string& target, int status) {
    const HttpReply reply = server.post(target, png);
    EXPECT_EQ(reply.status, status) << target << reply.body;
    return json::parse(reply.body)["error"].get<std::string>();
  };
  for (const char* top : {"0", "-1", "1e2", "2147483648", "NaN", "-0", "%00", "", "3.0", " 3"}) {
    EXPECT_EQ(server.post(std::string("/v1/classify?top=") + top, png).status, 400) << top;
  }
  EXPECT_TRUE(contains(error_of_target("/v1/classify?topp=3", 400), "top"));
  EXPECT_TRUE(contains(error_of_target("/v1/classify?model=none", 404), "small, clip"));
  EXPECT_TRUE(contains(error_of_target("/v1/embed?layer=2,99", 400), "block index"));
  EXPECT_EQ(error_of_target("/v1/embed?layer=0,1,-2", 400), "layer: expected each block once, got block 0 twice");
  EXPECT_EQ(server.post("/v1/embed?layer=1,0", png).status, 200);
  EXPECT_TRUE(contains(error_of_target("/v1/embed?tokens=some", 400), "pooled, cls, patch or all"));
  EXPECT_TRUE(contains(error_of_target("/v1/zeroshot?model=clip", 400), "labels"));
  EXPECT_TRUE(contains(error_of_target("/v1/zeroshot?labels=a,b", 400), "text tower"));
  EXPECT_TRUE(contains(error_of_target("/v1/classify?model=clip", 400), "clip"));
}

TEST(Serve, OddImagesAreNoTrouble) {
  const TestServer server;
  for (const auto& [width, height] : {std::pair<int64_t, int64_t>{1, 1}, {1, 65535}, {65535, 1}, {2, 2}}) {
    const HttpReply reply = server.post("/v1/classify", png_of(noise_image(1, width, height)));
    EXPECT_TRUE(reply.status == 200 || reply.status == 422) << width << "x" << height << reply.body;
  }
  const std::string png = png_of(noise_image(1));
  EXPECT_EQ(server.post("/v1/classify", png.substr(0, png.size() / 2)).status, 422) << "truncated";
  EXPECT_EQ(server.post("/v1/classify", png).status, 200);
}

// The images of the decoder's tests with Pillow's pixels: 16 bits, palettes, CMYK, progressive, animated and more.
TEST(Serve, EveryKindOfImageFileGivesTheResultOfItsPixels) {
  const TestServer server;
  const image::Golden golden("decode");
  for (const auto& entry : golden.index.at("cases")) {
    if (entry.at("mode") != "RGB") continue;
    const std::string name = entry.at("file");
    const std::vector<uint8_t> file = image::read_bytes(fixture("image/decode/" + name));
    const HttpReply reply = server.post(name.starts_with("exif_") ? "/v1/classify?exif" : "/v1/classify",
                                        std::string(file.begin(), file.end()), "Content-Type: image/jpeg\r\n");
    EXPECT_EQ(reply.status, 200) << name;
    EXPECT_EQ(reply.body, server.post("/v1/classify", png_of(golden.image(entry, 3))).body) << name;
  }
}

TEST(Serve, NoUrlIsFetched) {
  const TestServer server;
  for (const char* url : {"http://127.0.0.1/a.png", "file:///etc/passwd", "https://localhost/", "data:,x"}) {
    const HttpReply reply = server.post("/v1/classify", json{{"images", {url}}}.dump(), kJson);
    EXPECT_EQ(reply.status, 400) << url;
    EXPECT_TRUE(contains(reply.body, "URLs are not fetched")) << reply.body;
  }
}

}  // namespace
}  // namespace vitrail::testing
