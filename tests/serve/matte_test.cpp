// SPDX-License-Identifier: Apache-2.0
// POST /v1/matte: each image comes with a file, in a form and in JSON.
#include "tests/serve/serve_fixture.h"
#include "tests/support/program.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

serve::ServeOptions matte_options() {
  return {.models = {{"matte", fixture("vitmatte/windows/config.json").parent_path().string()}}, .port = 0};
}

// The trimap of noise_image(): unknown from column `from`.
std::string trimap_png(int64_t from) {
  image::Image trimap = image::make_image(40, 36, 1);
  for (int64_t y = 0; y < 36; ++y) std::fill(trimap.row(y) + from, trimap.row(y) + 40, uint8_t{128});
  return png_of(trimap);
}

// A form whose parts all have names of files.
struct FileForm {
  std::string body, headers = "Content-Type: multipart/form-data; boundary=edge\r\n";
  explicit FileForm(const std::vector<std::pair<std::string, std::string>>& parts) {
    for (const auto& [field, content] : parts) {
      body += "--edge\r\nContent-Disposition: form-data; name=\"" + field + "\"; filename=\"" + field +
              ".png\"\r\n\r\n" + content + "\r\n";
    }
    body += "--edge--\r\n";
  }
};

TEST(ServeMatte, EachImageHasItsTrimapOrAllHaveOne) {
  const TestServer server(matte_options());
  const std::string first = png_of(noise_image(1)), second = png_of(noise_image(2));
  const auto unknown = [&](const std::vector<std::pair<std::string, std::string>>& parts) {
    const FileForm form(parts);
    const HttpReply reply = server.post("/v1/matte", form.body, form.headers);
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::vector<double> shares;
    for (const json& item : json::parse(reply.body)) shares.push_back(item.at("unknown"));
    return shares;
  };
  const std::string quarter = trimap_png(30), half = trimap_png(20);
  EXPECT_EQ(unknown({{"image", first}, {"image", second}, {"trimap", quarter}, {"trimap", half}}),
            (std::vector{0.25, 0.5}));
  EXPECT_EQ(unknown({{"image", first}, {"trimap", half}, {"image", second}}), (std::vector{0.5, 0.5}));
  const json body{{"images", {data_uri(first), data_uri(second)}}, {"trimap", {data_uri(half), data_uri(quarter)}}};
  const json list = json::parse(server.post("/v1/matte", body.dump(), kJson).body);
  EXPECT_EQ(list.at(1).at("unknown"), 0.25);
}

TEST(ServeMatte, AFormWithOneImageMayAskForThePngOfTheCommandLine) {
  const TestServer server(matte_options());
  const fs::path folder = scratch_folder();
  const std::string photo = png_of(noise_image(1)), trimap = trimap_png(20);
  std::ofstream(folder / "a.png", std::ios::binary) << photo;
  std::ofstream(folder / "t.png", std::ios::binary) << trimap;
  const ProgramResult result = run_program({"matte", "-m", matte_options().models[0].path, folder / "a.png", "--trimap",
                                            folder / "t.png", "--render", folder / "out"});
  ASSERT_EQ(result.status, 0) << result.err;
  std::ifstream file(folder / "out/a.png", std::ios::binary);
  const std::string want{std::istreambuf_iterator<char>(file), {}};
  const FileForm form({{"image", photo}, {"trimap", trimap}});
  EXPECT_EQ(server.post("/v1/matte?format=png", form.body, form.headers).body, want);
  const json body{{"image", data_uri(photo)}, {"trimap", data_uri(trimap)}, {"format", "png"}};
  EXPECT_EQ(server.post("/v1/matte", body.dump(), kJson).body, want);
}

TEST(ServeMatte, RefusesWhatIsNoTrimap) {
  const TestServer server(matte_options());
  const auto refused = [&](const std::vector<std::pair<std::string, std::string>>& parts, int status,
                           const std::string& message) {
    const FileForm form(parts);
    const HttpReply reply = server.post("/v1/matte", form.body, form.headers);
    EXPECT_EQ(reply.status, status);
    EXPECT_TRUE(contains(reply.body, message)) << reply.body;
  };
  const std::pair<std::string, std::string> image{"image", png_of(noise_image(1))};
  refused({image}, 400, "trimap: expected one for the image, or a mask from which it is made, got none of them");
  refused({image, image, {"trimap", "x"}, {"trimap", "x"}, {"trimap", "x"}}, 400,
          "trimap: expected one for all images, or 2, one for each, got 3");
  refused({image, {"trimap", "no image"}}, 422, "trimap");
  refused({image, {"trimap", png_of(noise_image(1, 8, 8))}}, 422, "trimap: expected the image's size 40×36, got 8×8");
}

}  // namespace
}  // namespace vitrail::testing
