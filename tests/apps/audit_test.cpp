// SPDX-License-Identifier: Apache-2.0
// audit: what it finds in a set with planted faults, its outputs, and the effects of its options.
#include <algorithm>
#include <random>

#include "tests/apps/option_effects.h"
#include "tests/support/errors.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A photograph in which one colour prevails.
void write_coloured(const fs::path& file, size_t channel, uint64_t seed, int64_t width = 32) {
  fs::create_directories(file.parent_path());
  image::Image photo = image::make_image(width, 32, 3);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (size_t i = 0; i < photo.pixels.size(); ++i)
    photo.pixels[i] = static_cast<uint8_t>(random() % 120 + (i % 3 == channel ? 130 : 0));
  image::write_png(file, photo);
}

// red, blue and one green among the red ones, in two splits; a copy in the other split, and a damaged file.
fs::path faulty_set() {
  const fs::path root = scratch_folder() / "photos";
  for (uint64_t i = 0; i < 8; ++i) {
    const std::string name = std::to_string(i) + ".png", split = i < 6 ? "train" : "test";
    write_coloured(root / split / "red" / name, 0, i);
    write_coloured(root / split / "blue" / name, 2, 100 + i);
  }
  write_coloured(root / "train" / "red" / "wrong.png", 2, 200);
  write_coloured(root / "train" / "blue" / "wide.png", 2, 201, 320);
  fs::copy(root / "train" / "blue" / "0.png", root / "test" / "blue" / "copy.png");
  std::ofstream(root / "train" / "red" / "broken.png") << "no image";
  return root;
}

Arguments audit(const fs::path& set, const Arguments& more = {}, const std::string& threshold = "0.99999") {
  return Arguments{"audit", set, "-m", small_model(), "--threshold", threshold, "--quiet"} + more;
}

// The images of the findings of a kind.
std::vector<std::vector<std::string>> found(const Json& result, const std::string& kind) {
  std::vector<std::vector<std::string>> images;
  for (const Json& finding : result["findings"]) {
    if (finding["kind"] == kind) images.push_back(finding["images"].get<std::vector<std::string>>());
  }
  return images;
}

TEST(Audit, FindsPlantedFaults) {
  const fs::path set = faulty_set();
  const Json result = json_of(audit(set, {"--format", "json"}));
  using Images = std::vector<std::vector<std::string>>;
  EXPECT_EQ(result["images"], 20);
  EXPECT_EQ(result["classes"], (Json{"blue", "red"}));
  EXPECT_EQ(found(result, "unreadable"), (Images{{set / "train/red/broken.png"}}));
  EXPECT_EQ(found(result, "odd"), (Images{{set / "train/blue/wide.png"}}));
  const Images copies{{set / "train/blue/0.png", set / "test/blue/copy.png"}};
  EXPECT_EQ(found(result, "duplicates"), copies);
  EXPECT_EQ(found(result, "leak"), copies);
  EXPECT_EQ(found(result, "label"), (Images{{set / "train/red/wrong.png"}}));
  for (const Json& finding : result["findings"]) {
    if (finding["kind"] == "label") {
      EXPECT_EQ(finding["classes"], (Json{"red", "blue"}));
    }
  }
}

TEST(Audit, AnImageUnlikeAllOthersIsAnOutlier) {
  const fs::path set = scratch_folder();
  for (uint64_t i = 0; i < 24; ++i) write_coloured(set / (i < 12 ? "a" : "b") / (std::to_string(i) + ".png"), 0, i);
  write_coloured(set / "a" / "blue.png", 2, 24);
  const Json result = json_of(audit(set, {"--format", "json"}));
  EXPECT_EQ(found(result, "outlier"), (std::vector<std::vector<std::string>>{{set / "a" / "blue.png"}}));
}

TEST(Audit, ClassesOfTheSameImagesCannotBeToldApart) {
  const Json result = json_of(audit(folders_of({{"a", 12}, {"b", 12}}), {"--format", "json"}));
  for (const Json& finding : result["findings"]) {
    if (finding["kind"] == "classes") {
      EXPECT_EQ(finding["classes"], (Json{"a", "b"}));
    }
  }
  EXPECT_EQ(found(result, "classes").size(), 1u);
}

TEST(Audit, ASetWithoutFaultsHasNoFindings) {
  const fs::path set = scratch_folder();
  for (uint64_t i = 0; i < 6; ++i) {
    write_coloured(set / "red" / (std::to_string(i) + ".png"), 0, i);
    write_coloured(set / "blue" / (std::to_string(i) + ".png"), 2, 100 + i);
  }
  EXPECT_EQ(run(audit(set)).out, "nothing found\n");
}

TEST(Audit, WarnsWhereLabelsCannotBeChecked) {
  const ProgramResult result = run_program({"audit", folders_of({{"a", 3}, {"b", 1}}), "-m", small_model()});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "labels are not checked")) << result.err;
}

TEST(Audit, NeedsTwoClasses) {
  const std::string set = folders_of({{"a", 3}});
  EXPECT_ERROR(refusal({"audit", set, "-m", small_model(), "--quiet"}), "vitrail: error: " + set, "one class: a\n");
}

// The unlabelled images: one of each colour, and one in which both prevail.
fs::path unlabelled_images() {
  const fs::path folder = scratch_folder();
  write_coloured(folder / "red.png", 0, 300);
  write_coloured(folder / "blue.png", 2, 301);
  image::Image both = image::make_image(32, 32, 3);
  std::mt19937 random(302);
  for (size_t i = 0; i < both.pixels.size(); ++i)
    both.pixels[i] = static_cast<uint8_t>(random() % 120 + (i % 3 == (i / 3 % 2) * 2 ? 130 : 0));
  image::write_png(folder / "both.png", both);
  return folder;
}

void check_unlabelled() {
  const fs::path set = faulty_set(), more = unlabelled_images();
  const Json result = json_of(audit(set, {"--unlabelled", more, "--format", "json"}));
  ASSERT_EQ(found(result, "next").size(), 3u);
  EXPECT_EQ(found(result, "next")[0][0], more / "both.png") << "the least certain one is first";
  EXPECT_TRUE(found(json_of(audit(set, {"--format", "json"})), "next").empty());
}

void check_next() {
  const Json result =
      json_of(audit(faulty_set(), {"--unlabelled", unlabelled_images(), "--next", "2", "--format", "json"}));
  EXPECT_EQ(found(result, "next").size(), 2u);
}

void check_threshold_of_audit() {
  const Json all = json_of(audit(faulty_set(), {"--format", "json"}, "-1"));
  ASSERT_EQ(found(all, "duplicates").size(), 1u);
  EXPECT_EQ(found(all, "duplicates")[0].size(), 19u) << "each readable image";
}

void check_limit() {
  const fs::path set = folders_of({{"a", 2}, {"b", 2}});
  for (const char* name : {"a/x.png", "a/y.png", "b/z.png"}) std::ofstream(set / name) << "no image";
  const std::string text = run(audit(set, {"--limit", "2"})).out;
  EXPECT_TRUE(contains(text, "Unreadable images: 3, the first 2\n")) << text;
  EXPECT_TRUE(contains(text, "y.png")) << text;
  EXPECT_FALSE(contains(text, "z.png")) << text;
}

void check_format_of_audit() {
  const fs::path set = faulty_set();
  const std::string text = run(audit(set)).out, csv = run(audit(set, {"--format", "csv"})).out;
  EXPECT_EQ(run(audit(set, {"--format", "text"})).out, text) << "the default";
  const std::string wrong = (set / "train/red/wrong.png").string();
  EXPECT_TRUE(contains(text, "Probable label errors: 1\n  " + wrong + "\n      labelled red, looks like blue")) << text;
  EXPECT_EQ(lines_of(csv).at(0), "kind,finding,path,split,label,score,text");
  EXPECT_TRUE(contains(csv, wrong + ",train,red,")) << csv;
}

void check_scores() {
  const fs::path set = faulty_set(), file = scratch_folder() / "scores.csv";
  run(audit(set, {"--scores", file}));
  const std::vector<std::string> lines = lines_of(content_of(file));
  ASSERT_EQ(lines.size(), 21u);
  EXPECT_EQ(lines[0], "file,label,prediction,split,self_confidence,neighbor_distance,error");
  EXPECT_EQ(std::ranges::count_if(lines, [](const auto& line) { return contains(line, "broken.png,red,,train,,,"); }),
            1);
  EXPECT_EQ(std::ranges::count_if(lines, [](const auto& line) { return contains(line, "wrong.png,red,blue,train,0"); }),
            1);
}

void check_report_of_audit() {
  const fs::path set = faulty_set(), file = scratch_folder() / "audit.html";
  run(audit(set, {"--report", file}));
  const std::string page = content_of(file);
  EXPECT_TRUE(contains(page, "Probable label errors: 1")) << page.substr(0, 2000);
  EXPECT_TRUE(contains(page, "labelled red, looks like blue"));
  EXPECT_TRUE(contains(page, "src=\"data:image/"));
  EXPECT_FALSE(contains(page, "<script")) << "the page needs none";
}

void check_columns_of_audit() {
  const fs::path set = faulty_set(), list = set / "list.csv";
  std::ofstream(list) << "photo,kind\ntrain/red/0.png,r\ntrain/red/1.png,r\ntrain/blue/0.png,b\ntrain/blue/1.png,b\n";
  const Json result = json_of(audit(list, {"--columns", "file=photo,label=kind", "--format", "json"}));
  EXPECT_EQ(result["classes"], (Json{"r", "b"}));
}

}  // namespace

OptionEffects audit_option_effects() {
  return {{"audit", "--unlabelled", check_unlabelled},        {"audit", "--next", check_next},
          {"audit", "--threshold", check_threshold_of_audit}, {"audit", "--limit", check_limit},
          {"audit", "--format", check_format_of_audit},       {"audit", "--scores", check_scores},
          {"audit", "--report", check_report_of_audit},       {"audit", "--columns", check_columns_of_audit}};
}

}  // namespace vitrail::testing
