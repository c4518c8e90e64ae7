// SPDX-License-Identifier: Apache-2.0
// POST /v1/detect: the files of objects.
#include "tests/serve/serve_fixture.h"

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
  EXPECT_TRUE(csv.body.starts_with("image,label,index,score,x1,y1,x2,y2\n")) << csv.body;
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

}  // namespace
}  // namespace vitrail::testing
