// SPDX-License-Identifier: Apache-2.0
// POST /v1/segment: the results of `vitrail segment`, and embeddings that are kept.
#include <array>
#include <fstream>

#include "tests/serve/serve_fixture.h"
#include "tests/support/program.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/base64_internal.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/sam/predictor.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

const SamFixture& sam() {
  static const SamFixture fixture = sam_fixture("padded_windows");
  return fixture;
}

serve::ServeOptions sam_options() {
  serve::ServeOptions options = serve_options();
  options.models.push_back({"sam", sam().model.string()});
  return options;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What the command line writes of an image file, with options as in a query: "point=36,33&single".
std::string segmented(const fs::path& image, std::string query, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"segment", "-m", sam().model.string(), image.string(), "--format", "json"};
  for (query += "&"; !query.empty(); query.erase(0, query.find('&') + 1)) {
    const std::string option = query.substr(0, query.find('&'));
    const size_t equals = std::min(option.find('='), option.size());
    arguments.push_back("--" + option.substr(0, equals));
    if (equals < option.size()) arguments.push_back(option.substr(equals + 1));
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.status, 0) << query << result.err;
  return result.out;
}

// A form with an image of this name, so that both write the same path.
struct NamedForm {
  std::string body, headers = "Content-Type: multipart/form-data; boundary=edge\r\n";
  explicit NamedForm(const std::vector<std::pair<std::string, std::string>>& files, const std::string& mask = "") {
    for (const auto& [name, content] : files) add("image", name, content);
    if (!mask.empty()) add("mask", "mask", mask);
    body += "--edge--\r\n";
  }
  void add(const std::string& field, const std::string& name, const std::string& content) {
    body += "--edge\r\nContent-Disposition: form-data; name=\"" + field + "\"; filename=\"" + name + "\"\r\n\r\n" +
            content + "\r\n";
  }
};

struct Photo {
  fs::path folder = scratch_folder(), file = folder / "photo.png";
  std::string png = png_of(sam().image);
  Photo() { std::ofstream(file, std::ios::binary) << png; }
  NamedForm form(const std::string& mask = "") const { return NamedForm({{file.string(), png}}, mask); }
};

double hits(const TestServer& server) { return server.metric(R"(vitrail_embedding_cache_total{result="hit"})"); }
double misses(const TestServer& server) { return server.metric(R"(vitrail_embedding_cache_total{result="miss"})"); }

TEST(ServeSegment, PromptsGiveTheCommandLinesJson) {
  const TestServer server(sam_options());
  const Photo photo;
  for (const char* query : {"point=36,33", "point=18,18&point=81,6,0&point=45,45,1", "box=9,12,63,57",
                            "point=63,12&single", "box=9,12,63,57&point=20,20"}) {
    const NamedForm form = photo.form();
    const HttpReply reply = server.post(std::string("/v1/segment?") + query, form.body, form.headers);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::string want = segmented(photo.file, query);
    EXPECT_EQ(reply.body, "[" + want.substr(0, want.size() - 1) + "]\n") << query;
    json single = json::parse(server.post(std::string("/v1/segment?model=sam&") + query, photo.png).body);
    EXPECT_EQ(single["masks"], json::parse(want)["masks"]);
    EXPECT_EQ(single["image"], "-");
  }
}

TEST(ServeSegment, MasksToRefineComeAsImagesAndAsLogits) {
  const TestServer server(sam_options());
  const Photo photo;
  const Tensor logits = sam().prompts.at(4).mask_logits.contiguous();
  write_npy(photo.folder / "mask.npy", std::array{logits.size(0), logits.size(1)}, logits.data<float>());
  image::Image mask = image::make_image(sam().image.width, sam().image.height, 1);
  for (size_t i = 0; i < mask.pixels.size() / 2; ++i) mask.pixels[i] = 255;
  image::write_png(photo.folder / "mask.png", mask);
  for (const char* name : {"mask.npy", "mask.png"}) {
    const std::string content = bytes_of(photo.folder / name);
    const json want = json::parse(segmented(photo.file, "mask=" + (photo.folder / name).string()));
    const NamedForm form = photo.form(content);
    const HttpReply reply = server.post("/v1/segment", form.body, form.headers);
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(json::parse(reply.body).at(0), want) << name;
    const auto uri = [](const std::string& bytes) {
      return "data:application/octet-stream;base64," + to_base64(std::as_bytes(std::span(bytes)));
    };
    const json body{{"image", uri(photo.png)}, {"mask", uri(content)}};
    EXPECT_EQ(json::parse(server.post("/v1/segment", body.dump(), kJson).body)["masks"], want["masks"]) << name;
  }
}

TEST(ServeSegment, EverythingAndItsOptionsGiveTheCommandLinesJson) {
  const TestServer server(sam_options());
  const Photo photo;
  const std::string all = "everything&points-per-side=4&pred-iou-thresh=0&stability-score-thresh=0";
  for (const std::string& query :
       {all, all + "&box-nms-thresh=1&min-area=1&max-area=100000", all + "&crop-n-layers=1&crop-overlap-ratio=0.2",
        all + "&points-per-batch=3&min-mask-region-area=20&stability-score-offset=0.5",
        all + "&crop-n-layers=1&crop-n-points-downscale-factor=2&crop-nms-thresh=0.3"}) {
    const NamedForm form = photo.form();
    const HttpReply reply = server.post("/v1/segment?" + query, form.body, form.headers);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::string want = segmented(photo.file, query);
    EXPECT_EQ(reply.body, "[" + want.substr(0, want.size() - 1) + "]\n") << query;
    EXPECT_GT(json::parse(want)["masks"].size(), 0u) << query;
  }
}

TEST(ServeSegment, PngIsTheCommandLinesOverlay) {
  const TestServer server(sam_options());
  const Photo photo;
  for (const char* query : {"point=36,33", "everything&points-per-side=3&pred-iou-thresh=0&stability-score-thresh=0",
                            "box=9,12,63,57&opacity=0.9"}) {
    segmented(photo.file, query, {"-o", (photo.folder / "out").string()});
    const std::string want = bytes_of(photo.folder / "out/photo.png");
    const HttpReply reply = server.post(std::string("/v1/segment?") + query, photo.png, "Accept: image/png\r\n");
    EXPECT_EQ(reply.headers.at("content-type"), "image/png");
    EXPECT_EQ(reply.body, want) << query;
    EXPECT_EQ(server.post(std::string("/v1/segment?format=png&") + query, photo.png).body, want) << query;
  }
}

TEST(ServeSegment, ABadImageOrAPromptOutsideItIsOneErrorAmongTheResults) {
  const TestServer server(sam_options());
  const Photo photo;
  const NamedForm form({{"a", "not an image"}, {"b", photo.png}, {"c", png_of(noise_image(1, 20, 20))}});
  const HttpReply reply = server.post("/v1/segment?point=36,33", form.body, form.headers);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json list = json::parse(reply.body);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_TRUE(list[0].contains("error") && list[0]["image"] == "a" && list[0]["prompt"] == 0) << list[0];
  EXPECT_EQ(list[1]["masks"].size(), 3u);
  EXPECT_TRUE(contains(list[2]["error"], "coordinates in the image of 20×20")) << list[2];
  EXPECT_EQ(server.post("/v1/segment?point=999,1", photo.png).status, 422);
  EXPECT_EQ(server.post("/v1/segment?point=1,1", "not an image", "Content-Type: image/png\r\n").status, 422);
}

TEST(ServeSegment, OptionsAreChecked) {
  const TestServer server(sam_options());
  const Photo photo;
  for (const auto& [query, expected] :
       std::vector<std::pair<std::string, std::string>>{{"", "point, box, mask or everything"},
                                                        {"point=1", "X,Y"},
                                                        {"point=1,2,2", "LABEL"},
                                                        {"point=1,nan", "X,Y"},
                                                        {"box=1,2,3", "X0,Y0,X1,Y1"},
                                                        {"box=1,2,3,4&box=1,2,3,4", "one value"},
                                                        {"single", "point, box or mask"},
                                                        {"everything&point=1,2", "no prompt beside it"},
                                                        {"everything&single", "point, box or mask"},
                                                        {"point=1,2&points-per-side=3", "everything beside it"},
                                                        {"everything&points-per-side=0", "from 1"},
                                                        {"everything&points-per-side=1000000000", "from 1"},
                                                        {"everything&crop-n-layers=9", "from 0 to 8"},
                                                        {"everything&crop-n-layers=-1", "from 0 to 8"},
                                                        {"everything&box-nms-thresh=1.5", "from 0 to 1"},
                                                        {"everything&min-area=5&max-area=4", "at most max-area"},
                                                        {"point=1,2&opacity=2", "from 0 to 1"},
                                                        {"point=1,2&format=gif", "json, png"},
                                                        {"point=1,2&mask=none", "mask"},
                                                        {"point=1,2&model=small", "Segment Anything"},
                                                        {"point=1,2&pointt=1,2", "point"}}) {
    const HttpReply reply = server.post("/v1/segment?" + query, photo.png);
    EXPECT_EQ(reply.status, 400) << query << reply.body;
    EXPECT_TRUE(contains(reply.body, expected)) << query << reply.body;
  }
  json points = json::array();
  for (int i = 0; i <= 1024; ++i) points.push_back("1,1");
  const std::string uri = data_uri(photo.png);
  EXPECT_EQ(server.post("/v1/segment", json{{"image", uri}, {"point", points}}.dump(), kJson).status, 400);
  points.erase(0);
  EXPECT_EQ(server.post("/v1/segment", json{{"image", uri}, {"point", points}}.dump(), kJson).status, 200);
  EXPECT_EQ(server.post("/v1/classify?model=sam", photo.png).status, 400);
  EXPECT_EQ(server.post("/v1/embed?model=sam", photo.png).status, 400);
  EXPECT_EQ(TestServer().post("/v1/segment?point=1,2", photo.png).status, 400) << "no model of Segment Anything";
}

TEST(ServeSegment, TheModelIsDescribedAndGivesEmbeddings) {
  const TestServer server(sam_options());
  const json models = json::parse(server.get("/v1/models").body)["data"];
  EXPECT_EQ(models.at(2)["segments"], true);
  EXPECT_EQ(server.get("/v2/models/sam/ready").status, 200);
  const json metadata = json::parse(server.get("/v2/models/sam").body);
  const Shape shape = sam::Predictor(sam().model).embedding_shape();
  EXPECT_EQ(metadata["outputs"].at(0)["shape"], (json{-1, shape[0], shape[1], shape[2]}));
  const Photo photo;
  const std::string image = base64(photo.png);
  const json body{{"inputs", {{{"name", "images"}, {"datatype", "BYTES"}, {"shape", {1}}, {"data", {image}}}}}};
  const json reply = json::parse(server.post("/v2/models/sam/infer", body.dump(), kJson).body);
  const json& output = reply["outputs"].at(0);
  EXPECT_EQ(output["shape"], (json{1, shape[0], shape[1], shape[2]}));
  const Tensor want = sam::Predictor(sam().model).embed(sam().image).values.contiguous();
  EXPECT_EQ(output["data"].get<std::vector<float>>(),
            std::vector<float>(want.data<float>(), want.data<float>() + want.numel()));
}

// What the server keeps of an image, in bytes.
size_t bytes_of_an_embedding() {
  const sam::ImageEmbedding embedding = sam::Predictor(sam().model).embed(sam().image);
  return static_cast<size_t>(embedding.values.numel() + embedding.projections.numel() +
                             embedding.decoder_input.numel()) *
         sizeof(float);
}

TEST(ServeSegment, EmbeddingsOfRecentImagesAreKeptWithinTheBudget) {
  const size_t each = bytes_of_an_embedding();
  serve::ServeOptions options = sam_options();
  options.limits.embedding_bytes = 2 * each;
  const TestServer server(options);
  const auto click = [&](uint64_t image, const std::string& more = "") {
    const HttpReply reply = server.post("/v1/segment?point=9,9" + more, png_of(noise_image(image)));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.body;
  };
  const std::string first = click(1);
  click(2);
  EXPECT_EQ(misses(server), 2);
  EXPECT_EQ(hits(server), 0);
  EXPECT_EQ(server.metric("vitrail_embedding_cache_bytes"), static_cast<double>(2 * each)) << "both fit exactly";
  EXPECT_EQ(click(1), first);
  EXPECT_EQ(hits(server), 1);
  click(3);  // drops 2, which was used longest ago
  EXPECT_EQ(click(1), first);
  EXPECT_EQ(hits(server), 2);
  click(2);
  EXPECT_EQ(misses(server), 4);
  EXPECT_EQ(server.metric("vitrail_embedding_cache_bytes"), static_cast<double>(2 * each));
  click(2, "&exif");  // other pixels, perhaps
  EXPECT_EQ(misses(server), 5);
}

TEST(ServeSegment, ABudgetBelowAnEmbeddingKeepsNothing) {
  const size_t each = bytes_of_an_embedding();
  for (const size_t budget : {each - 1, each}) {
    serve::ServeOptions options = sam_options();
    options.limits.embedding_bytes = budget;
    const TestServer server(options);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(server.post("/v1/segment?point=9,9", png_of(noise_image(1))).status, 200);
    EXPECT_EQ(hits(server), budget < each ? 0 : 1);
  }
}

// 65,536 points: the search ends because its client leaves.
TEST(ServeSegment, OthersAreServedDuringALongSearchWhichEndsWithItsClient) {
  const TestServer server(sam_options());
  const std::string png = png_of(noise_image(1));
  {
    HttpConnection connection(server.port());
    connection.send(
        http_request("POST", "/v1/segment?everything&points-per-side=256&points-per-batch=1&pred-iou-thresh=9", png));
    wait_until([&] { return misses(server) == 1; });
    EXPECT_EQ(server.post("/v1/classify", png).status, 200);
    EXPECT_EQ(server.post("/v1/segment?point=9,9", png).status, 200);
    EXPECT_EQ(server.metric("vitrail_batch_images_count"), 2) << "the search still runs";
  }
  wait_until([&] { return server.metric(R"(vitrail_departed_requests_total{route="segment"})") == 1; });
}

TEST(ServeSegment, ChangedFilesOfOtherModelsAreNoFault) {
  const Warnings warnings;
  const serve::ServeOptions options = with_copied_models(sam_options());
  const TestServer server(options);
  const std::string png = png_of(noise_image(1)), before = server.post("/v1/segment?point=9,9", png).body;
  for (size_t i = 0; i < 2; ++i) change_weights(options.models[i]);
  EXPECT_EQ(server.post("/v1/segment?point=9,9", png).body, before);
  EXPECT_EQ(server.post("/v1/segment?point=9,9", png_of(noise_image(2))).status, 200);
  EXPECT_EQ(server.post("/v1/classify", png).status, 503);
}

TEST(ServeSegment, AReloadedModelComputesItsEmbeddingsAgain) {
  TestServer server(sam_options());
  const std::string png = png_of(noise_image(1)), before = server.post("/v1/segment?point=9,9", png).body;
  server.load();
  EXPECT_EQ(server.post("/v1/segment?point=9,9", png).body, before);
  EXPECT_EQ(misses(server), 2);
}

// The route's row is the one that fits the model.
TEST(ServeSegment, ASemanticSegmenterHasItsOwnOptionsAndResults) {
  serve::ServeOptions options = sam_options();
  options.models.push_back({"ade", fixture("semantic/linear/config.json").parent_path().string()});
  const TestServer server(std::move(options));
  const Photo photo;
  const auto post = [&](const std::string& query) { return server.post("/v1/segment?" + query, photo.png); };
  const json classes = json::parse(post("model=ade&rle").body);
  ASSERT_GT(classes["segments"].size(), 1u) << classes;
  EXPECT_TRUE(classes["segments"][0].contains("rle"));
  EXPECT_TRUE(json::parse(post("point=36,33").body).contains("masks")) << "the first model that fits";
  const std::string png = post("model=ade&colors=labels&format=png").body;
  const image::Image labels = image::decode(std::as_bytes(std::span(png)), {}, "labels");
  EXPECT_EQ(labels.width, sam().image.width);
  EXPECT_EQ(post("model=ade&point=1,2").status, 400);
  EXPECT_EQ(post("model=sam&point=1,2&legend").status, 400);
  const json models = json::parse(server.get("/v1/models").body);
  for (const json& model : models["data"]) {
    const json tasks = model["id"] == "sam" ? json{"segment", "explain"} : json{"segment"};
    EXPECT_EQ(model["tasks"] == tasks, model["id"] == "ade" || model["id"] == "sam") << model;
  }
}

}  // namespace
}  // namespace vitrail::testing
