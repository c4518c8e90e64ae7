// SPDX-License-Identifier: Apache-2.0
// Attention and principal components: maps are the library's, figures are the command line's.
#include <fstream>

#include "tests/serve/serve_fixture.h"
#include "tests/support/program.h"
#include "vitrail/analysis/pca.h"

namespace vitrail::testing {
namespace {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ServeViews, AttentionMapsAreTheLibrarys) {
  const TestServer server;
  const Model model(small_model());
  const image::Image photo = noise_image(3);
  const auto check = [&](const std::string& query, const AttentionMapOptions& options) {
    const HttpReply reply = server.post("/v1/attention" + query, png_of(photo));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json object = json::parse(reply.body);
    const Tensor want = model.attention(photo, options);
    EXPECT_EQ(object["shape"], (json{want.size(0), want.size(1)}));
    EXPECT_EQ(object["maps"].at(0)["values"].get<std::vector<float>>(), floats(want)) << query;
    EXPECT_EQ(object["region"]["width"], 40);
  };
  check("", {});
  check("?layer=0&head=1", {.layer = 0, .head = 1});
  check("?rollout", {.rollout = true});
  check("?query=20,18", {.query = std::array<int64_t, 2>{20, 18}});
  const json all = json::parse(server.post("/v1/attention?layer=all&head=all", png_of(photo)).body);
  EXPECT_EQ(static_cast<int64_t>(all["maps"].size()), model.config().vit.depth * model.config().vit.num_heads);
}

TEST(ServeViews, AttentionPngIsTheCommandLinesFigure) {
  const TestServer server;
  const auto folder = scratch_folder();
  const std::string png = png_of(noise_image(3));
  std::ofstream(folder / "-", std::ios::binary) << png;  // the caption has the name
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--rollout"}, {"--layer", "all"}}) {
    std::vector<std::string> arguments{
        "attention", "-m", small_model(), (folder / "-").string(), "-o", (folder / "figure.png").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ASSERT_EQ(run_program(arguments).status, 0);
    std::string query = "?format=png";
    if (!more.empty()) query += "&" + more[0].substr(2) + (more.size() > 1 ? "=" + more[1] : "");
    const HttpReply reply = server.post("/v1/attention" + query, png);
    EXPECT_EQ(reply.headers.at("content-type"), "image/png");
    EXPECT_EQ(reply.body, content_of(folder / "figure.png")) << query;
  }
}

TEST(ServeViews, PrincipalComponentsAreTheLibrarysAndTheOverlayTheCommandLines) {
  const TestServer server;
  const Model model(small_model());
  std::vector<Tensor> grids;
  std::vector<std::string> files;
  for (const uint64_t seed : {1, 2}) {
    const image::Image photo = noise_image(seed);
    grids.push_back(
        model.run({{photo}}, {.output = infer::Output::features, .features = {.tokens = infer::Tokens::grid}})[0]
            .select(0, 0));
    files.push_back(png_of(photo));
  }
  const std::vector<analysis::PcaMaps> want = analysis::pca_maps(grids, {});
  files.insert(files.begin() + 1, "not an image");
  const Form form(files);
  const json list = json::parse(server.post("/v1/pca?raw", form.body, form.headers).body);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_TRUE(list[1].contains("error"));
  for (const size_t i : {0u, 1u}) {
    EXPECT_EQ(list[2 * i]["colors"].get<std::vector<float>>(), floats(want[i].colors));
    EXPECT_EQ(list[2 * i]["scores"].get<std::vector<float>>(), floats(want[i].scores));
  }
  const auto folder = scratch_folder();
  std::ofstream(folder / "a.png", std::ios::binary) << files[0];
  ASSERT_EQ(
      run_program({"pca", "-m", small_model(), (folder / "a.png").string(), "-o", folder.string() + "/out"}).status, 0);
  EXPECT_EQ(server.post("/v1/pca?format=png", files[0]).body, content_of(folder / "out/a.png"));
}

TEST(ServeViews, TheRegionIsTheVisiblePartOfTheImage) {
  const TestServer server;
  const Model model(small_model());
  for (const auto& [width, height] : {std::pair(60, 36), std::pair(36, 60)}) {
    const std::string png = png_of(noise_image(1, width, height));
    const image::Region want = image::visible_region(model.transform(), width, height);
    for (const char* target : {"/v1/attention", "/v1/pca"}) {
      const json region = json::parse(server.post(target, png).body)["region"];
      EXPECT_EQ(region, (json{{"width", width},
                              {"height", height},
                              {"left", want.left},
                              {"top", want.top},
                              {"right", want.right},
                              {"bottom", want.bottom}}))
          << target;
    }
  }
}

TEST(ServeViews, OptionsAreChecked) {
  const TestServer server;
  const std::string png = png_of(noise_image(1));
  for (const char* target :
       {"/v1/attention?layer=99", "/v1/attention?layer=x", "/v1/attention?head=99", "/v1/attention?query=1",
        "/v1/attention?format=gif", "/v1/pca?layer=99", "/v1/pca?foreground=second", "/v1/pca?opacity=2",
        "/v1/pca?invert", "/v1/pca?opacity=nan"}) {
    EXPECT_EQ(server.post(target, png).status, 400) << target;
  }
  for (const char* route : {"/v1/pca?layer=", "/v1/attention?layer=", "/v1/embed?layer="}) {  // it has two blocks
    for (const char* layer : {"-2", "-1", "0", "1"})
      EXPECT_EQ(server.post(route + std::string(layer), png).status, 200);
    for (const char* layer : {"-3", "2"})
      EXPECT_EQ(server.post(route + std::string(layer), png).status, 400) << route << layer;
  }
  const Form form({png, png});
  EXPECT_EQ(server.post("/v1/attention?head=99", form.body, form.headers).status, 400) << "no error of each image";
  EXPECT_EQ(server.post("/v1/attention?query=9999,1", png).status, 422) << "by the size of the image";
}

}  // namespace
}  // namespace vitrail::testing
