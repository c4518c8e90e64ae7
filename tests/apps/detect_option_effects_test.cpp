// SPDX-License-Identifier: Apache-2.0
// The options of `vitrail detect`, and what other commands say to its model.
#include <cstdio>
#include <sstream>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/option_effects.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path detector_folder() { return fixture("yolos/mid/config.json").parent_path(); }

// Runs on two images.
std::vector<json> objects_of(const Arguments& more = {}) {
  return json_lines(run(Arguments{"detect", "-m", detector_folder(), noise_folder()} + more).out);
}

void check_detect_model() {
  EXPECT_FALSE(objects_of().at(0)["detections"].empty());
  const std::string other = refusal({"detect", "-m", small_model(), noise_folder()});
  EXPECT_TRUE(contains(
      other,
      "--model: expected an object detector (RF-DETR, LW-DETR, YOLOS), or a detector of labels (OWLv2, OWL-ViT), got a "
      "Vision Transformer"))
      << other;
}

void check_detect_threshold() {
  EXPECT_EQ(objects_of({"--threshold", "0"}).at(0)["detections"].size(), 9U);
  EXPECT_EQ(objects_of({"--threshold", "1"}).at(0)["detections"].size(), 0U);
}

void check_detect_classes() {
  const json all = objects_of().at(0)["detections"];
  const json first = all.at(0);
  const json found = objects_of({"--classes", first["label"]}).at(0)["detections"];
  EXPECT_EQ(found.at(0), first);
  EXPECT_LT(found.size(), all.size());
  const std::string unknown = refusal({"detect", "-m", detector_folder(), noise_folder(), "--classes", "cut"});
  EXPECT_TRUE(contains(unknown, "--classes: expected a name or an index of the model's 5 classes; did you mean cat"))
      << unknown;
}

void check_detect_nms() {
  const Arguments all{"--threshold", "0"};
  EXPECT_LT(objects_of(all + Arguments{"--nms", "0"}).at(0)["detections"].size(), 9U);
  EXPECT_EQ(objects_of(all + Arguments{"--nms", "1"}).at(0)["detections"].size(), 9U);
}

void check_detect_arrays() {
  const fs::path folder = scratch_folder();
  const json found = objects_of({"--arrays", folder}).at(0)["detections"];
  const NpyArray array = read_npy(folder / "a.npy");
  EXPECT_EQ(json(array.shape), (json{found.size(), 6}));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(json(array.f32[i]), found.at(0)["box"][i]);
  EXPECT_EQ(json(array.f32[5]), json(found.at(0)["index"].get<float>()));
  const fs::path none = scratch_folder();
  objects_of({"--arrays", none, "--threshold", "1"});
  EXPECT_EQ(json(read_npy(none / "a.npy").shape), (json{0, 6}));
}

// The objects of both images in a file.
void check_detect_coco() {
  const fs::path file = scratch_folder() / "results.json";
  const std::vector<json> all = objects_of({"--coco", file, "--threshold", "0"});
  const json results = json::parse(content_of(file));
  ASSERT_EQ(results.size(), 18U);
  const json &first = results.at(0), &other = results.at(17), &object = all.at(0)["detections"].at(0);
  EXPECT_EQ(first["image_id"], "a");
  EXPECT_EQ(other["image_id"], "b");
  EXPECT_EQ(first["category_id"], object["index"]);
  EXPECT_EQ(first["bbox"].at(0), object["box"].at(0));
  objects_of({"--coco", file, "--threshold", "1"});  // replaces its own file
  EXPECT_EQ(json::parse(content_of(file)), json::array());
  const Arguments command{"detect", "-m", detector_folder(), noise_folder(), "--coco"};
  EXPECT_TRUE(contains(run_program(command + Arguments{"-"}).err, "--coco: expected a file, got -"));
  std::ofstream(file) << "notes";
  EXPECT_TRUE(contains(run_program(command + Arguments{file}).err, "--coco: expected no file")) << "another file";
}

void check_detect_yolo() {
  const fs::path folder = scratch_folder();
  objects_of({"--yolo", folder, "--threshold", "0"});
  EXPECT_EQ(lines_of(content_of(folder / "b.txt")).size(), 9U);
  std::istringstream line(content_of(folder / "a.txt"));
  double value = 0;
  EXPECT_TRUE(line >> value && value < 5) << "a class";
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(line >> value && value >= 0 && value <= 1) << i;
  const ProgramResult again = run_program({"detect", "-m", detector_folder(), noise_folder(), "--yolo", folder});
  EXPECT_TRUE(contains(again.err, "--yolo: expected no file")) << "labels of others may look likewise";
  objects_of({"--yolo", folder, "--threshold", "1", "--force"});
  EXPECT_EQ(content_of(folder / "a.txt"), "");
}

void check_detect_csv() {
  const fs::path file = scratch_folder() / "objects.csv";
  const json object = objects_of({"--csv", file, "--threshold", "0"}).at(0)["detections"].at(0);
  const std::vector<std::string> lines = lines_of(content_of(file));
  ASSERT_EQ(lines.size(), 19U);
  EXPECT_EQ(lines[0], "image,label,index,score,x1,y1,x2,y2,track");
  const std::string row = str((noise_folder() / "a.png").string(), ",", object["label"].get<std::string>(), ",");
  EXPECT_TRUE(lines[1].starts_with(row)) << lines[1];
}

// Runs on an image of 100×32 pixels.
std::vector<json> tiled(const Arguments& more) {
  const fs::path file = scratch_folder() / "wide.png";
  image::Image wide = image::make_image(100, 32, 3);
  for (size_t i = 0; i < wide.pixels.size(); ++i) wide.pixels[i] = static_cast<uint8_t>(i * i % 251);
  image::write_png(file, wide);
  return json_lines(run(Arguments{"detect", "-m", detector_folder(), file, "--threshold", "0"} + more).out);
}

void check_detect_tile() {
  EXPECT_NE(tiled({"--tile", "32"}).at(0)["detections"], tiled({}).at(0)["detections"]);
  EXPECT_EQ(tiled({"--tile", "100"}).at(0)["detections"], tiled({}).at(0)["detections"]);
  const ProgramResult small = run_program({"detect", "-m", detector_folder(), noise_folder(), "--tile", "31"});
  EXPECT_TRUE(contains(small.err, "--tile: expected an integer of at least 32")) << small.err;
}

void check_detect_tile_overlap() {
  const Arguments tiles{"--tile", "32"};
  EXPECT_EQ(tiled(tiles + Arguments{"--tile-overlap", "0.2"}).at(0)["detections"], tiled(tiles).at(0)["detections"]);
  EXPECT_NE(tiled(tiles + Arguments{"--tile-overlap", "0.6"}).at(0)["detections"], tiled(tiles).at(0)["detections"]);
}

void check_detect_masks() {
  const fs::path folder = scratch_folder(), results = folder / "results.json";
  const Arguments masks{"--masks", sam_fixture("global").model, "--coco", results, "--render", folder};
  const json found = objects_of(masks).at(0)["detections"], best = found.at(0);
  EXPECT_FALSE(objects_of().at(0)["detections"].at(0).contains("rle"));
  EXPECT_EQ(json::parse(content_of(results)).at(0)["segmentation"], best["rle"]);
  const fs::path boxes = scratch_folder();
  objects_of({"--render", boxes});
  EXPECT_NE(image::read_image(folder / "a.png").pixels, image::read_image(boxes / "a.png").pixels);
  const std::string other = refusal({"detect", "-m", detector_folder(), noise_folder(), "--masks", small_model()});
  EXPECT_TRUE(contains(other, "--masks: expected one of Segment Anything, got a Vision Transformer")) << other;
}

void check_detect_render() {
  const fs::path folder = scratch_folder(), none = scratch_folder();
  objects_of({"--render", folder});
  objects_of({"--render", none, "--threshold", "1"});
  const image::Image photo = image::read_image(noise_folder() / "a.png");
  EXPECT_EQ(image::read_image(none / "a.png").pixels, photo.pixels);
  EXPECT_NE(image::read_image(folder / "a.png").pixels, photo.pixels);
}

void check_detect_exif() {
  const fs::path turned = fixture("image/decode/exif_6.png");
  const auto found = [&](const Arguments& more) {
    return run(Arguments{"detect", "-m", detector_folder(), turned, "--threshold", "0"} + more).out;
  };
  EXPECT_NE(found({}), found({"--exif"}));
}

void check_detect_batch() { EXPECT_EQ(objects_of({"--batch", "1"}), objects_of()); }

void check_detect_format() {
  const auto line = [](const Arguments& more) {
    return run(Arguments{"detect", "-m", detector_folder(), noise_folder() / "a.png", "--format", "text"} + more).out;
  };
  const json first = objects_of().at(0)["detections"].at(0);
  char score[16];
  std::snprintf(score, sizeof score, "%.2f", first["score"].get<double>());
  const std::string path = (noise_folder() / "a.png").string();
  EXPECT_TRUE(line({}).starts_with(path + ": " + first["label"].get<std::string>() + " " + score)) << line({});
  EXPECT_EQ(line({"--threshold", "1"}), path + ": nothing\n");
}

void check_detect_force() {
  const fs::path folder = scratch_folder();
  std::ofstream(folder / "a.npy") << "notes";
  const Arguments arguments{"detect", "-m", detector_folder(), noise_folder(), "--arrays", folder};
  EXPECT_NE(run_program(arguments).status, 0);
  EXPECT_EQ(content_of(folder / "a.npy"), "notes");
  run(arguments + Arguments{"--force"});
  EXPECT_NE(content_of(folder / "a.npy"), "notes");
}

TEST(DetectCommand, OtherCommandsNameItsModel) {
  const std::string message = refusal({"classify", "-m", detector_folder(), noise_folder()});
  EXPECT_TRUE(contains(message, "a YOLOS detector, which `vitrail detect`")) << message;
}

}  // namespace

OptionEffects detect_option_effects() {
  return {{"detect", "-m,--model", check_detect_model},  {"detect", "--threshold", check_detect_threshold},
          {"detect", "--classes", check_detect_classes}, {"detect", "--nms", check_detect_nms},
          {"detect", "--arrays", check_detect_arrays},   {"detect", "--render", check_detect_render},
          {"detect", "--exif", check_detect_exif},       {"detect", "--batch", check_detect_batch},
          {"detect", "--format", check_detect_format},   {"detect", "--force", check_detect_force},
          {"detect", "--coco", check_detect_coco},       {"detect", "--yolo", check_detect_yolo},
          {"detect", "--csv", check_detect_csv},         {"detect", "--masks", check_detect_masks},
          {"detect", "--tile", check_detect_tile},       {"detect", "--tile-overlap", check_detect_tile_overlap}};
}

}  // namespace vitrail::testing
