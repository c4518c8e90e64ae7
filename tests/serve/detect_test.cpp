// SPDX-License-Identifier: Apache-2.0
// POST /v1/detect: the files of objects.
#include "tests/serve/serve_fixture.h"
#include "tests/support/golden.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

serve::ServeOptions detector_options() {
  return {.models = {{"yolos", fixture("yolos/mid/config.json").parent_path().string()}}, .port = 0};
}

TEST(ServeDetect, SeveralImagesHaveOneFile) {
  const TestServer server(detector_options());
  const json two{{"images", {data_uri(png_of(noise_image(1))), data_uri(png_of(noise_image(2)))}}};
  const auto reply_as = [&](const std::string& format) {
    return server.post("/v1/detect?threshold=0&format=" + format, two.dump(), kJson);
  };
  const json results = json::parse(reply_as("json").body), coco = json::parse(reply_as("coco").body);
  ASSERT_EQ(coco.size(), 18U);
  EXPECT_EQ(coco.at(9)["score"], results.at(1)["detections"].at(0)["score"]);
  const HttpReply csv = reply_as("csv");
  EXPECT_EQ(csv.headers.at("content-type"), "text/csv");
  EXPECT_TRUE(csv.body.starts_with("image,label,index,score,x1,y1,x2,y2,track\n")) << csv.body;
  EXPECT_EQ(std::ranges::count(csv.body, '\n'), 19);
  const auto expect_refused = [&](const std::string& format, const std::string& message) {
    const HttpReply reply = reply_as(format);
    EXPECT_EQ(reply.status, 400);
    EXPECT_TRUE(contains(reply.body, message)) << reply.body;
  };
  expect_refused("yolo", "format: expected json for several images, got yolo");
  expect_refused("xml", "format: expected one of json, png, coco, yolo, csv, got 'xml'");
}

TEST(ServeDetect, OneImageHasAFileOfItsOwn) {
  const TestServer server(detector_options());
  const HttpReply reply = server.post("/v1/detect?threshold=0&format=yolo", png_of(noise_image(1)));
  EXPECT_EQ(reply.headers.at("content-type"), "text/plain");
  EXPECT_EQ(std::ranges::count(reply.body, '\n'), 9);
}

TEST(ServeDetect, TilesAreOnesOfTheImage) {
  const TestServer server(detector_options());
  const std::string photo = png_of(noise_image(1, 100, 40));
  const auto found = [&](const std::string& more) {
    return json::parse(server.post("/v1/detect?threshold=0" + more, photo).body)["detections"];
  };
  EXPECT_EQ(found("").size(), 9U);
  EXPECT_NE(found("&tile=40"), found(""));
  EXPECT_EQ(found("&tile=100"), found("")) << "one tile";
}

// A file of Segment Anything whose weights the server reads where they are, in f32.
std::string mapped_sam() {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, tensor] : read_golden(fixture("sam/transformers/model.safetensors")).tensors)
    tensors.emplace_back(name, tensor.to(DType::f32));
  const std::filesystem::path file = scratch_folder() / "sam.safetensors";
  weights::write_safetensors(file, tensors);
  return file.string();
}

// Options name served models.
TEST(ServeDetect, MasksAndBoxesAreThoseOfOtherServedModels) {
  const Warnings warnings;
  serve::ServeOptions options = detector_options();
  options.models.push_back({"pose", fixture("vitpose/simple/config.json").parent_path().string()});
  options.models.push_back({"sam", mapped_sam()});
  const TestServer server(options);
  const std::string photo = png_of(noise_image(1));
  const auto result = [&](const std::string& target) {
    const HttpReply reply = server.post(target, photo);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body);
  };
  const json masks = result("/v1/detect?masks=sam&threshold=0"), best = masks["detections"].at(0);
  EXPECT_EQ(result("/v1/detect?masks=sam&threshold=0"), masks);
  std::ostringstream box;
  box.precision(17);
  for (size_t side = 0; side < 4; ++side)
    box << (side > 0 ? "," : "") << std::clamp(best["box"][side].get<double>(), 0.0, side % 2 == 0 ? 40.0 : 36.0);
  EXPECT_EQ(best["rle"], result("/v1/segment?single&box=" + box.str())["masks"][0]["rle"]);
  EXPECT_EQ(result("/v1/pose?detector=yolos&threshold=0&classes=" + best["index"].dump())["persons"].at(0)["label"],
            best["label"]);
  // Each model encodes the image once: for both requests of masks, a segmenter's own, and that of persons.
  EXPECT_EQ(server.metric(R"(vitrail_embedding_cache_total{result="miss"})"), 2);
  EXPECT_EQ(server.metric(R"(vitrail_embedding_cache_total{result="hit"})"), 4);
  const auto refused = [&](const std::string& target) {
    const HttpReply reply = server.post(target, photo);
    return str(reply.status, " ", json::parse(reply.body)["error"].get<std::string>());
  };
  EXPECT_EQ(refused("/v1/detect?masks=none"), "404 masks: expected one of yolos, pose, sam, got 'none'");
  EXPECT_EQ(refused("/v1/detect?masks=pose"), "400 masks: expected one of Segment Anything, got ViTPose");
  EXPECT_EQ(refused("/v1/pose?detector=sam"),
            "400 detector: expected an object detector (RF-DETR, LW-DETR, YOLOS), got Segment Anything");
  change_weights(options.models[2]);
  EXPECT_EQ(refused("/v1/detect?masks=sam&threshold=0"), "503 a file of a model has changed: reload the models");
  EXPECT_EQ(server.post("/v1/detect", photo).status, 200);
}

}  // namespace
}  // namespace vitrail::testing
