// SPDX-License-Identifier: Apache-2.0
// The texts, tables and failures of `vitrail segment`, and `vitrail eval` of Segment Anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/segment_runs.h"
#include "tests/apps/shell.h"
#include "tests/support/sam_fixture.h"
#include "tests/train/segment_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"
#include "vitrail/sam/mask_evaluation.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A folder with a photograph of 61×90 pixels.
struct Photos {
  fs::path folder = scratch_folder(), photo = folder / "photo.png", broken = folder / "broken.png";
  Photos() {
    image::write_png(photo, exact_windows().image);
    std::ofstream(broken) << "no image";
  }
  fs::path prompts(const std::string& lines) const {
    std::ofstream(folder / "p.jsonl", std::ios::trunc) << lines;
    return folder / "p.jsonl";
  }
};

ProgramResult run_segment(const Arguments& more, const std::string& input = "") {
  return run_program(Arguments{"segment", "-m", exact_windows().model} + more, input);
}

// The lines of masks in text, from their JSON.
std::string lines_of_masks(const json& masks) {
  std::string text;
  for (const json& mask : masks) {
    const auto box = mask["bbox"].get<std::array<int, 4>>();
    char line[128];
    std::snprintf(line, sizeof line, "  IoU %.3f  %d pixels  box %d,%d,%d,%d\n", mask["iou"].get<double>(),
                  mask["area"].get<int>(), box[0], box[1], box[0] + box[2], box[1] + box[3]);
    text += line;
  }
  return text;
}

TEST(SegmentText, HasTheNumbersOfJson) {
  const Photos files;
  const Arguments point{files.photo, "--point", "30,20"};
  const json masks = json::parse(run_segment(point + Arguments{"--format", "json"}).out)["masks"];
  ASSERT_EQ(masks.size(), 3U);
  EXPECT_EQ(run_segment(point).out, files.photo.string() + "\n" + lines_of_masks(masks));
  const fs::path prompts = files.prompts(R"({"image": "photo.png", "points": [[30, 20]]}

{"image": "photo.png", "box": [3, 4, 50, 40], "multimask": false})");
  const auto lines = json_lines(run_segment({"--prompts", prompts, "--format", "json"}).out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(run_segment({"--prompts", prompts}).out,
            files.photo.string() + "  " + prompts.string() + ":1\n" + lines_of_masks(lines[0]["masks"]) +
                files.photo.string() + "  " + prompts.string() + ":3\n" + lines_of_masks(lines[1]["masks"]));
  const Arguments everything{
      files.photo, "--everything", "--points-per-side", "2", "--pred-iou-thresh", "0", "--stability-score-thresh", "0"};
  const size_t count = json::parse(run_segment(everything + Arguments{"--format", "json"}).out)["masks"].size();
  EXPECT_EQ(run_segment(everything).out, str(files.photo.string(), ": ", count, " masks\n"));
}

TEST(SegmentFailures, AreObjectsInTheirPlace) {
  const Photos files;
  const std::string reason = files.broken.string() + ": ";
  const ProgramResult everything =
      run_segment({files.broken, files.photo, "--everything", "--points-per-side", "1", "--pred-iou-thresh", "0",
                   "--stability-score-thresh", "0", "--format", "json"});
  EXPECT_EQ(everything.status, 1);
  const auto lines = json_lines(everything.out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["image"], files.broken.string());
  EXPECT_TRUE(lines[0]["error"].get<std::string>().starts_with(reason)) << lines[0];
  EXPECT_FALSE(lines[0].contains("masks"));
  EXPECT_TRUE(lines[1].contains("masks"));
  EXPECT_TRUE(everything.err.starts_with("vitrail: error: " + reason)) << everything.err;
  const ProgramResult text = run_segment({files.broken, files.photo, "--point", "30,20"});
  EXPECT_EQ(text.status, 1);
  EXPECT_TRUE(text.out.starts_with(files.photo.string() + "\n")) << text.out;
  // Prompts of an image that failed have its error, each with its number; the other image's are between them.
  const fs::path prompts = files.prompts(R"({"image": "broken.png", "points": [[1, 1]]}
{"image": "photo.png", "points": [[30, 20]], "multimask": false}
{"image": "broken.png", "points": [[2, 2]]}
{"image": "photo.png", "points": [[61.5, 20]]})");
  const fs::path logits = files.folder / "l.npy";
  const ProgramResult result = run_segment({"--prompts", prompts, "--format", "json", "--logits", logits});
  EXPECT_EQ(result.status, 1);
  const auto objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(objects[i]["prompt"], i);
    EXPECT_EQ(objects[i]["image"], (i % 2 == 0 ? files.broken : files.photo).string());
    EXPECT_EQ(objects[i].contains("error"), i != 1) << objects[i];
  }
  EXPECT_TRUE(objects[2]["error"].get<std::string>().starts_with(reason)) << objects[2];
  EXPECT_TRUE(objects[3]["error"].get<std::string>().starts_with(prompts.string() + ":4: ")) << objects[3];
  EXPECT_EQ(lines_of(result.err).size(), 2U) << "one for the image, one for the prompt" << result.err;
  const NpyArray rows = read_npy(logits);
  ASSERT_EQ(rows.shape[0], 4);
  EXPECT_EQ(rows.shape[1], 3) << "some prompts have several masks";
  const auto size = static_cast<size_t>(rows.shape[2] * rows.shape[3]);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(std::isnan(rows.f32[i * size]), i != 3) << i;
}

TEST(SegmentLogits, OfSingleMasksHaveOne) {
  const Photos files;
  const fs::path logits = files.folder / "l.npy";
  const fs::path prompts = files.prompts(R"({"image": "photo.png", "points": [[30, 20]], "multimask": false}
{"image": "photo.png", "box": [3, 4, 50, 40], "multimask": false})");
  EXPECT_EQ(run_segment({"--prompts", prompts, "--logits", logits}).status, 0);
  EXPECT_EQ(read_npy(logits).shape[0], 2);
  EXPECT_EQ(read_npy(logits).shape[1], 1);
  EXPECT_EQ(run_segment({files.photo, files.photo, "--point", "3,3", "--logits", logits}).status, 0);
  EXPECT_EQ(read_npy(logits).shape[0], 2);
  EXPECT_EQ(read_npy(logits).shape[1], 3);
}

// More prompts than run together.
TEST(SegmentPrompts, ManyOfAnImageAreInTheirOrder) {
  const Photos files;
  std::string lines;
  for (int i = 0; i < 131; ++i)
    lines += str(R"({"image": "photo.png", "multimask": false, "points": [[)", i % 3 * 20 + 5, ", ", 7, "]]}\n");
  const auto objects = json_lines(run_segment({"--prompts", files.prompts(lines), "--format", "json"}).out);
  ASSERT_EQ(objects.size(), 131U);
  for (size_t i = 0; i < 131; ++i) {
    EXPECT_EQ(objects[i]["prompt"], i);
    EXPECT_NEAR(objects[i]["masks"][0]["iou"].get<double>(), objects[i % 3]["masks"][0]["iou"].get<double>(), 1e-5)
        << i;
    EXPECT_NEAR(objects[i]["masks"][0]["area"].get<double>(), objects[i % 3]["masks"][0]["area"].get<double>(), 20)
        << i;
  }
  EXPECT_NE(objects[0]["masks"], objects[1]["masks"]);
}

TEST(Segment, WithoutImagesSaysSo) {
  const ProgramResult result = run_segment({"-", "--point", "1,1"}, "");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "vitrail: warning: no images\n");
  const fs::path file = scratch_folder() / "x";
  std::ofstream(file) << "x";
  const Photos files;
  EXPECT_TRUE(contains(run_segment({files.photo, "--point", "1,1", "-o", file / "o"}).err,
                       (file / "o").string() + ": expected a folder for the masks, got "));
}

// The rows of metadata.csv, the properties of polygons and the annotations of COCO.
TEST(SegmentFiles, HaveTheNumbersOfEachMask) {
  const Photos files;
  const fs::path out = files.folder / "out";
  const fs::path prompts = files.prompts(R"({"image": "photo.png", "points": [[30, 20]]}
{"image": "photo.png", "box": [3, 4, 50, 40], "multimask": false})");
  const auto objects = json_lines(
      run_segment({"--prompts", prompts, "--format", "json", "-o", out, "--write", "csv,coco,polygons,sa1b"}).out);
  ASSERT_EQ(objects.size(), 2U);
  json masks = objects[0]["masks"];
  for (const json& mask : objects[1]["masks"]) masks.push_back(mask);
  ASSERT_EQ(masks.size(), 4U);
  const std::vector<std::string> rows = lines_of(content_of(out / "photo/metadata.csv"));
  const json coco = json::parse(content_of(out / "coco.json")), sa1b = json::parse(content_of(out / "photo.json"));
  const json polygons = json::parse(content_of(out / "photo.geojson"));
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0], "id,area,bbox_x0,bbox_y0,bbox_w,bbox_h,prompt,predicted_iou,stability_score");
  EXPECT_EQ(polygons["type"], "FeatureCollection");
  EXPECT_EQ(coco["categories"], (json::array({json{{"id", 1}, {"name", "object"}}})));
  EXPECT_EQ(sa1b["image"], (json{{"image_id", 1}, {"width", 61}, {"height", 90}, {"file_name", files.photo.string()}}));
  for (size_t i = 0; i < 4; ++i) {
    const json& mask = masks[i];
    const int prompt = i < 3 ? 0 : 1;
    const json& record = sa1b["annotations"][i];
    const auto box = record["bbox"].get<std::array<int, 4>>();
    const std::string start =
        str(i, ",", mask["area"].get<int>(), ",", box[0], ",", box[1], ",", box[2], ",", box[3], ",", prompt, ",");
    ASSERT_TRUE(rows[i + 1].starts_with(start)) << rows[i + 1] << " for " << start;
    float iou = 0, stability = 0;
    ASSERT_EQ(std::sscanf(rows[i + 1].c_str() + start.size(), "%f,%f", &iou, &stability), 2) << rows[i + 1];
    EXPECT_EQ(iou, mask["iou"].get<float>());
    EXPECT_EQ(stability, record["stability_score"].get<float>());
    EXPECT_EQ(mask["bbox"][0], mask["area"] == 0 ? 0 : box[0]);
    EXPECT_EQ(mask["bbox"][3], mask["area"] == 0 ? 0 : box[3] + 1);
    const json& annotation = coco["annotations"][i];
    EXPECT_EQ(annotation["image_id"], 1);
    EXPECT_EQ(annotation["category_id"], 1);
    EXPECT_EQ(annotation["iscrowd"], 0);
    EXPECT_EQ(annotation["area"], mask["area"]);
    EXPECT_EQ(annotation["bbox"], mask["bbox"]);
    EXPECT_EQ(annotation["score"].get<float>(), mask["iou"].get<float>());
    EXPECT_EQ(annotation["segmentation"], mask["rle"]);
    const json& feature = polygons["features"][i];
    EXPECT_EQ(feature["type"], "Feature");
    EXPECT_EQ(feature["id"], i);
    EXPECT_EQ(feature["geometry"]["type"], "MultiPolygon");
    EXPECT_EQ(feature["properties"]["prompt"], prompt);
    EXPECT_EQ(feature["properties"]["area"], mask["area"]);
    EXPECT_EQ(feature["properties"]["predicted_iou"].get<float>(), iou);
    EXPECT_EQ(feature["properties"]["stability_score"].get<float>(), stability);
  }
}

// With --everything a row has the point and the crop of its mask.
TEST(SegmentFiles, OfEverythingHaveThePointAndTheCrop) {
  const Photos files;
  const fs::path out = files.folder / "out";
  const ProgramResult result = run_segment({files.photo,
                                            "--everything",
                                            "--points-per-side",
                                            "2",
                                            "--crop-n-layers",
                                            "1",
                                            "--pred-iou-thresh",
                                            "0",
                                            "--stability-score-thresh",
                                            "0",
                                            "--box-nms-thresh",
                                            "1",
                                            "--crop-nms-thresh",
                                            "1",
                                            "--format",
                                            "json",
                                            "-o",
                                            out,
                                            "--write",
                                            "csv"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json masks = json::parse(result.out)["masks"];
  const std::vector<std::string> rows = lines_of(content_of(out / "photo/metadata.csv"));
  ASSERT_EQ(rows.size(), masks.size() + 1);
  ASSERT_GT(masks.size(), 4U);
  for (size_t i = 0; i < masks.size(); ++i) {
    std::vector<double> numbers;
    for (size_t at = 0; at < rows[i + 1].size();) {
      numbers.push_back(std::stod(rows[i + 1].substr(at)));
      const size_t comma = rows[i + 1].find(',', at);
      at = comma == std::string::npos ? rows[i + 1].size() : comma + 1;
    }
    std::vector<double> want{static_cast<double>(i), masks[i]["area"].get<double>()};
    for (const json& value : masks[i]["bbox"]) want.push_back(value.get<double>());
    for (const json& value : masks[i]["point_coords"][0]) want.push_back(value.get<double>());
    want.push_back(masks[i]["predicted_iou"].get<double>());
    want.push_back(masks[i]["stability_score"].get<double>());
    for (const json& value : masks[i]["crop_box"]) want.push_back(value.get<double>());
    ASSERT_EQ(numbers.size(), want.size()) << rows[i + 1];
    for (size_t n = 0; n < want.size(); ++n) EXPECT_NEAR(numbers[n], want[n], 1e-4 + 1e-6 * want[n]) << rows[i + 1];
  }
}

// A model whose preferred mask is not always the best one.
std::string evaluated_model() { return sam_fixture("head_dim_32").model; }

// Each mean under its own name, in JSON and in text, also beside images that cannot be read.
TEST(EvalSegment, TellsTheMeansOfEachPrompt) {
  const fs::path instances = train::make_instances(5, 3);
  const sam::MaskEvaluation want =
      sam::evaluate_masks(sam::Predictor(evaluated_model()), *sam::open_instances(instances, "train"));
  ASSERT_NE(want.click, want.click_best) << "the names must matter";
  const Arguments arguments{"eval", "-m", evaluated_model(), instances, "--split", "train"};
  const ProgramResult result = run(arguments + Arguments{"--format", "json"});
  const json object = json::parse(result.out);
  EXPECT_EQ(object["images"], 5);
  EXPECT_EQ(object["masks"], 10);
  EXPECT_EQ(object["click_iou"].get<double>(), want.click_best);
  EXPECT_EQ(object["click_preferred_iou"].get<double>(), want.click);
  EXPECT_EQ(object["three_clicks_iou"].get<double>(), want.three_clicks);
  EXPECT_EQ(object["box_iou"].get<double>(), want.box);
  EXPECT_GT(object["seconds"].get<double>(), 0);
  EXPECT_FALSE(object.contains("unreadable"));
  EXPECT_TRUE(result.err.starts_with("vitrail: evaluating 5 images of ")) << result.err;
  EXPECT_EQ(run(arguments + Arguments{"--quiet", "--format", "json"}).err, "");
  char text[512];
  std::snprintf(text, sizeof text,
                "images              5\nmasks               10\nmean IoU for\n  one click, best   %.4f\n"
                "  one click, chosen %.4f\n  three clicks      %.4f\n  a box             %.4f\n",
                want.click_best, want.click, want.three_clicks, want.box);
  EXPECT_EQ(run(arguments).out, text);
  std::ofstream(instances / "train/01.png", std::ios::trunc) << "no image";
  const ProgramResult broken = run_program(arguments + Arguments{"--format", "json"});
  EXPECT_EQ(broken.status, 1);
  EXPECT_EQ(json::parse(broken.out)["unreadable"], 1);
  EXPECT_EQ(json::parse(broken.out)["images"], 4);
  EXPECT_TRUE(contains(broken.err, "vitrail: error: " + (instances / "train/01.png").string())) << broken.err;
}

// The encoder has the precision that is asked for.
TEST(EvalSegment, TakesThePrecision) {
  const fs::path instances = train::make_instances(2, 2);
  const Arguments arguments{"eval",     "-m",   evaluated_model(), instances, "--split", "val",
                            "--format", "json", "--quiet"};
  const auto means = [&](const Arguments& more) {
    json object = json::parse(run(arguments + more).out);
    object.erase("seconds");
    return object;
  };
  const sam::MaskEvaluation want =
      sam::evaluate_masks(sam::Predictor(evaluated_model(), {.precision = kernels::Precision::int8}),
                          *sam::open_instances(instances, "val"));
  EXPECT_EQ(means({"--precision", "int8"})["box_iou"].get<double>(), want.box);
  EXPECT_EQ(means({}), means({"--precision", "fp32"}));
}

}  // namespace
}  // namespace vitrail::testing
