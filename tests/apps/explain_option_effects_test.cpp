// SPDX-License-Identifier: Apache-2.0
// The options of explain.
#include <fstream>

#include "tests/apps/option_effects.h"
#include "tests/support/sam_fixture.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json manifest_of(const fs::path& page) {
  const std::string html = content_of(page), begin = "id=\"manifest\">";
  const size_t at = html.find(begin) + begin.size();
  return Json::parse(html.substr(at, html.find("</script>", at) - at));
}

fs::path photo() { return noise_folder() / "a.png"; }

Json explained(const Arguments& more = {}) {
  const fs::path page = scratch_folder() / "page.html";
  run(Arguments{"explain", "-m", small_model(), photo(), "-o", page} + more);
  return manifest_of(page);
}

void check_output() {
  const fs::path folder = scratch_folder() / "pages", second = noise_folder() / "b.png";
  const ProgramResult result = run({"explain", "-m", small_model(), photo(), second, "-o", folder});
  EXPECT_EQ(manifest_of(folder / "b.html")["image"]["name"], "b.png");
  EXPECT_EQ(lines_of(result.out).size(), 2U);
  EXPECT_TRUE(
      contains(result.out, (folder / "a.html").string() + ": " + str(fs::file_size(folder / "a.html")) + " bytes"))
      << result.out;
  for (const char* link : {"href=\"a.html\"", "href=\"b.html\""})
    EXPECT_TRUE(contains(content_of(folder / "index.html"), link)) << link;
  const ProgramResult refused =
      run_program({"explain", "-m", small_model(), photo(), second, "-o", folder / "one.html"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "-o: expected a folder for the pages of 2 images")) << refused.err;
}

void check_class() {
  EXPECT_EQ(explained({"--class", "3"})["prediction"]["class"], 3);
  EXPECT_TRUE(contains(refusal({"explain", "-m", small_model(), photo(), "-o", "x.html", "--class", "no such"}),
                       "--class: expected"));
}

void check_labels() {
  const fs::path names = scratch_folder() / "names.txt";
  std::ofstream file(names);
  for (int i = 0; i < 10; ++i) file << "name" << i << "\n";
  file.close();
  const Json manifest = explained({"--labels", names, "--class", "name4"});
  EXPECT_EQ(manifest["prediction"]["class"], 4);
  EXPECT_EQ(manifest["classes"]["4"], "name4");
}

// The second model's prediction, and CKA of a model with itself.
void check_compare() {
  const Json manifest = explained({"--compare", small_model()});
  const Json classes =
      json_of({"classify", "-m", small_model(), photo(), "--top", "5", "--format", "json"})["predictions"];
  ASSERT_EQ(manifest["compared"]["top"].size(), classes.size());
  for (size_t i = 0; i < classes.size(); ++i) EXPECT_EQ(manifest["compared"]["top"][i]["class"], classes[i]["index"]);
  EXPECT_EQ(manifest["compared"]["parameters"], manifest["model"]["parameters"]);
  EXPECT_TRUE(manifest["tensors"].contains("explain.compared.cka"));
  EXPECT_FALSE(explained().contains("compared"));
  EXPECT_TRUE(contains(
      refusal({"explain", "-m", small_model(), photo(), "-o", "x.html", "--compare", sam_fixture("windows").model}),
      "--compare: expected a Vision Transformer, got Segment Anything"));
}

void check_detail() {
  EXPECT_EQ(explained({"--detail", "small"})["tensors"]["blocks.0.attn.q"]["dtype"], "i8");
  EXPECT_EQ(explained()["tensors"]["blocks.0.attn.q"]["dtype"], "f16");
  EXPECT_EQ(explained({"--detail", "full"})["tensors"]["blocks.0.mlp.act"]["dtype"], "f16");
}

void check_language() {
  EXPECT_EQ(explained()["language"], "en");
  EXPECT_EQ(explained({"--lang", "zh"})["language"], "zh");
}

Json prompt_of(const Arguments& prompt) {
  const fs::path page = scratch_folder() / "prompt.html";
  run(Arguments{"explain", "-m", sam_fixture("windows").model, photo(), "-o", page} + prompt);
  return manifest_of(page)["prompt"];
}

void check_point() {
  const Json points = prompt_of({"--point", "3,4", "--point", "5,6,0"})["points"];
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0], (Json{{"x", 3.0}, {"y", 4.0}, {"label", 1}}));
  EXPECT_EQ(points[1], (Json{{"x", 5.0}, {"y", 6.0}, {"label", 0}}));
  const ProgramResult refused =
      run_program({"explain", "-m", small_model(), photo(), "-o", "x.html", "--point", "1,1"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "--point: does not apply to")) << refused.err;
}

void check_box() { EXPECT_EQ(prompt_of({"--box", "1,2,8,9"})["box"], (Json{1.0, 2.0, 8.0, 9.0})); }

}  // namespace

std::string facts_of_page(const fs::path& page) {
  const Json manifest = manifest_of(page);
  return manifest["prediction"].dump() + manifest["claims"].dump();
}

OptionEffects explain_option_effects() {
  return {{"explain", "-o,--output", check_output}, {"explain", "--class", check_class},
          {"explain", "--labels", check_labels},    {"explain", "--compare", check_compare},
          {"explain", "--detail", check_detail},    {"explain", "--lang", check_language},
          {"explain", "--point", check_point},      {"explain", "--box", check_box}};
}

}  // namespace vitrail::testing
