// SPDX-License-Identifier: Apache-2.0
// `vitrail segment`, compared with the outputs of segment_anything in the fixtures and with the library.
#include <array>
#include <cmath>
#include <fstream>

#include "tests/apps/segment_runs.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"
#include "vitrail/sam/predictor.h"
#include "vitrail/sam/rle.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A folder with the fixture's image and a file of its prompts.
struct PromptFolder {
  fs::path folder = scratch_folder(), image = folder / "photo.png", prompts = folder / "prompts.jsonl";
  PromptFolder() {
    image::write_png(image, padded_windows().image);
    std::ofstream lines(prompts);
    for (size_t i = 0; i < padded_windows().prompts.size(); ++i) lines << line_of(i) << "\n";
  }
  json line_of(size_t i) const {
    const sam::Prompt& prompt = padded_windows().prompts[i];
    json line{{"image", "photo.png"}, {"multimask", prompt.multimask}};
    for (const sam::Point& point : prompt.points) line["points"].push_back({point.x, point.y, point.label});
    if (prompt.box) line["box"] = {prompt.box->x0, prompt.box->y0, prompt.box->x1, prompt.box->y1};
    if (prompt.mask_logits.defined()) {
      const std::string name = "mask" + std::to_string(i) + ".npy";
      const Tensor logits = prompt.mask_logits.contiguous();
      write_npy(folder / name, std::array{logits.size(0), logits.size(1)}, logits.data<float>());
      line["mask_logits"] = name;
    }
    return line;
  }
};

ProgramResult segment(const std::vector<std::string>& arguments, const std::string& input = "") {
  std::vector<std::string> all{"segment", "-m", padded_windows().model.string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all, input);
}

ProgramResult segmented(const std::vector<std::string>& arguments, const std::string& input = "") {
  const ProgramResult result = segment(arguments, input);
  EXPECT_EQ(result.status, 0) << ::testing::PrintToString(arguments) << result.err;
  return result;
}

sam::Rle rle_of(const json& rle) {
  return sam::from_coco(rle["counts"].get<std::string>(), rle["size"][1], rle["size"][0], "rle");
}

// Row i of an array, without the masks that a prompt does not have.
Tensor row_of(const NpyArray& array, size_t i, int64_t masks) {
  const auto per_mask = static_cast<size_t>(array.shape[2] * array.shape[3]);
  const auto first =
      array.f32.begin() + static_cast<std::ptrdiff_t>(i * per_mask * static_cast<size_t>(array.shape[1]));
  const auto size = static_cast<std::ptrdiff_t>(per_mask) * masks;
  return Tensor::from<float>({masks, array.shape[2], array.shape[3]}, std::vector<float>(first, first + size));
}

// The pixels and measures of a mask are those of the reference's logits, unless these are nearly 0.
void expect_mask(const json& mask, const Tensor& signs) {
  const sam::BinaryMask got = sam::decode(rle_of(mask["rle"]));
  ASSERT_EQ((Shape{got.height, got.width}), signs.shape());
  const Tensor want = signs.contiguous();
  int64_t wrong = 0;
  for (int64_t i = 0; i < want.numel(); ++i) {
    const int8_t sign = want.data<int8_t>()[i];
    wrong += sign != 0 && (got.pixels[static_cast<size_t>(i)] != 0) != (sign > 0);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(mask["area"], sam::area(got));
  const auto [x0, y0, x1, y1] = sam::bounding_box(got);
  const json box{x0, y0, x1 - x0 + 1, y1 - y0 + 1};
  EXPECT_EQ(mask["bbox"], mask["area"] == 0 ? json({0, 0, 0, 0}) : box);
}

TEST(Segment, APromptsFileGivesTheMasksOfTheReference) {
  const PromptFolder files;
  const fs::path logits = files.folder / "logits.npy", embedding = files.folder / "embedding.npy";
  const ProgramResult result =
      segmented({"--prompts", files.prompts, "--format", "json", "--logits", logits, "--embedding", embedding});
  const std::vector<json> lines = json_lines(result.out);
  const NpyArray array = read_npy(logits);
  ASSERT_EQ(lines.size(), padded_windows().prompts.size());
  ASSERT_EQ(array.shape, (std::vector<int64_t>{static_cast<int64_t>(lines.size()), 3, 40, 40}));
  for (size_t i = 0; i < lines.size(); ++i) {
    SCOPED_TRACE(i);
    const std::string number = std::to_string(i);
    const Tensor &want = padded_windows().golden["logits_" + number], &iou = padded_windows().golden["iou_" + number];
    EXPECT_TRUE(close(row_of(array, i, want.size(0)), want, kSamTolerance * largest(want)));
    EXPECT_EQ(std::isnan(array.f32[(3 * i + 1) * 1600]), want.size(0) == 1);
    EXPECT_EQ(lines[i]["prompt"], i);
    EXPECT_EQ(lines[i]["image"], files.image.string());
    ASSERT_EQ(static_cast<int64_t>(lines[i]["masks"].size()), want.size(0));
    for (int64_t m = 0; m < want.size(0); ++m) {
      const json& mask = lines[i]["masks"][static_cast<size_t>(m)];
      EXPECT_NEAR(mask["iou"].get<double>(), iou.data<float>()[m], kSamTolerance * largest(iou));
      expect_mask(mask, padded_windows().golden["signs_" + number].select(0, m));
    }
  }
  const NpyArray embeddings = read_npy(embedding);
  const Tensor& want = padded_windows().golden["embedding"];
  EXPECT_EQ(embeddings.shape, (std::vector<int64_t>{1, want.size(0), want.size(1), want.size(2)}));
  EXPECT_TRUE(close(Tensor::from<float>(want.shape(), embeddings.f32), want, kSamTolerance * largest(want)));
}

TEST(Segment, OptionsGiveTheSamePromptAsALineOfAFile) {
  const PromptFolder files;
  const std::vector<json> lines = json_lines(segmented({"--prompts", files.prompts, "--format", "json"}).out);
  const auto option = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{files.image, "--format", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_lines(segmented(arguments).out).at(0)["masks"];
  };
  EXPECT_EQ(option({"--point", "36,33"}), lines[0]["masks"]);
  EXPECT_EQ(option({"--point", "18,18", "--point", "81,6,0", "--point", "45,45,1"}), lines[1]["masks"]);
  EXPECT_EQ(option({"--box", "9,12,63,57"}), lines[2]["masks"]);
  EXPECT_EQ(option({"--mask", files.folder / "mask4.npy"}), lines[4]["masks"]);
  EXPECT_EQ(option({"--point", "63,12", "--single"}), lines[6]["masks"]);
}

// Prompts of two images alternate: results keep the order of the lines.
TEST(Segment, ResultsAreInTheOrderOfThePrompts) {
  const PromptFolder files;
  image::Image other = padded_windows().image;
  std::ranges::reverse(other.pixels);
  image::write_png(files.folder / "other.png", other);
  json first = files.line_of(0), second = files.line_of(2);
  std::string text;
  std::vector<json> expected;
  for (const char* image : {"photo.png", "other.png", "./photo.png", "other.png"}) {
    json& line = text.size() % 2 == 0 ? first : second;
    line["image"] = image;
    text += line.dump() + "\n";
    std::ofstream(files.prompts, std::ios::trunc) << line << "\n";
    expected.push_back(json_lines(segmented({"--prompts", files.prompts, "--format", "json"}).out).at(0)["masks"]);
  }
  std::ofstream(files.prompts, std::ios::trunc) << text;
  const fs::path logits = files.folder / "logits.npy", embedding = files.folder / "embedding.npy";
  const std::vector<json> lines = json_lines(
      segmented({"--prompts", files.prompts, "--format", "json", "--logits", logits, "--embedding", embedding}).out);
  ASSERT_EQ(lines.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i]["prompt"], i);
    EXPECT_EQ(lines[i]["masks"], expected[i]) << i;
  }
  EXPECT_EQ(read_npy(logits).shape[0], 4);
  EXPECT_EQ(read_npy(embedding).shape[0], 2) << "an image is embedded once";
}

TEST(Segment, FailedImagesKeepTheirPlace) {
  const PromptFolder files;
  fs::rename(files.image, files.folder / "b.png");
  std::ofstream(files.folder / "a.png") << "not an image";
  const fs::path logits = files.folder / "logits.npy", embedding = files.folder / "embedding.npy";
  const ProgramResult result = segment({files.folder / "a.png", files.folder / "b.png", "--point", "5,6", "--format",
                                        "json", "--logits", logits, "--embedding", embedding});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(result.err, "a.png: expected a JPEG")) << result.err;
  const std::vector<json> lines = json_lines(result.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].contains("error"));
  EXPECT_EQ(lines[1]["masks"].size(), 3u);
  const NpyArray rows = read_npy(logits), embeddings = read_npy(embedding);
  for (const NpyArray* array : {&rows, &embeddings}) {
    ASSERT_EQ(array->shape[0], 2);
    EXPECT_TRUE(std::isnan(array->f32.front()));
    EXPECT_FALSE(std::isnan(array->f32.back()));
  }
}

TEST(Segment, WrongPromptsNameTheirLineAndTheOthersRun) {
  const PromptFolder files;
  const std::vector<float> binary(1600, 0.0F), small(9, -1.0F);
  write_npy(files.folder / "small.npy", std::array<int64_t, 2>{3, 3}, small.data());
  std::vector<float> mask = binary;
  mask[3] = 1;
  write_npy(files.folder / "binary.npy", std::array<int64_t, 2>{40, 40}, mask.data());
  mask[3] = INFINITY;
  write_npy(files.folder / "infinite.npy", std::array<int64_t, 2>{40, 40}, mask.data());
  const std::vector<std::pair<std::string, std::string>> wrong{
      {R"("points": [[90.5, 3, 1]])", "coordinates in the image of 90×60"},
      {R"("box": [1, 1, 91, 5])", "coordinates in the image of 90×60"},
      {R"("box": [5, 5, 5, 9])", "x0 < x1"},
      {R"("mask_logits": "small.npy")", "mask logits [40, 40]"},
      {R"("mask_logits": "binary.npy")", "a binary mask"},
      {R"("mask_logits": "infinite.npy")", "NaN or infinity"},
      {R"("mask_logits": "none.npy")", "none.npy"},
  };
  std::ofstream lines(files.prompts);
  for (const auto& [field, message] : wrong) lines << "{\"image\": \"photo.png\", " << field << "}\n";
  lines << "{\"image\": \"photo.png\", \"points\": [[5, 5]]}\n{\"image\": \"none.png\", \"points\": [[5, 5]]}\n";
  lines.close();
  const ProgramResult result = segment({"--prompts", files.prompts, "--format", "json"});
  EXPECT_EQ(result.status, 1);
  const std::vector<json> objects = json_lines(result.out);
  ASSERT_EQ(objects.size(), wrong.size() + 2);
  for (size_t i = 0; i < wrong.size(); ++i) {
    const std::string error = objects[i].value("error", "");
    EXPECT_TRUE(error.starts_with(files.prompts.string() + ":" + std::to_string(i + 1) + ": ")) << error;
    EXPECT_TRUE(contains(error, wrong[i].second)) << error;
    EXPECT_TRUE(contains(result.err, error)) << result.err;
  }
  EXPECT_EQ(objects[wrong.size()]["masks"].size(), 3u);
  EXPECT_TRUE(contains(objects.back()["error"].get<std::string>(), "none.png"));
}

TEST(Segment, WrongUsageIsRefusedBeforeTheModelIsLoaded) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--point", "1,2"}, "INPUT is required"},
      {{"a.png", "--point", "1,2,2"}, "expected X,Y or X,Y,LABEL"},
      {{"a.png", "--point", "1"}, "expected X,Y or X,Y,LABEL"},
      {{"a.png", "--point", "1,nan"}, "expected X,Y or X,Y,LABEL"},
      {{"a.png", "--point", "1,2x"}, "expected X,Y or X,Y,LABEL"},
      {{"a.png", "--point", "1,2,"}, "expected X,Y or X,Y,LABEL"},
      {{"a.png", "--box", "1,2,3"}, "expected X0,Y0,X1,Y1"},
      {{"a.png", "--box", "1,2,3,inf"}, "expected X0,Y0,X1,Y1"},
      {{"a.png", "--box", "1,2,3,4", "--box", "1,2,3,4"}, "expected one box"},
      {{"a.png", "--single"}, "--single"},
      {{"a.png", "--point", "1,2", "--everything"}, "--everything: expected no prompt"},
      {{"a.png", "--prompts", "p.jsonl"}, "--prompts: names the images itself"},
      {{"--prompts", "p.jsonl", "--point", "1,2"}, "--prompts: expected no other prompt"},
      {{"a.png", "--point", "1,2", "--points-per-side", "3"}, "--everything"},
      {{"a.png", "--everything", "--logits", "l.npy"}, "--logits: expected a prompt"},
      {{"a.png", "--point", "1,2", "--logits", "l.txt"}, "--logits: expected FILE.npy"},
      {{"a.png", "--embedding", "e.csv"}, "--embedding: expected FILE.npy"},
      {{"a.png", "--embedding", "e.npy", "-o", "out"}, "-o: expected a prompt"},
      {{"a.png", "--embedding", "e.npy", "--format", "json"}, "--format json: expected a prompt"},
      {{"a.png", "--point", "1,2", "--write", "coco"}, "--write: expected -o"},
      {{"a.png", "--point", "1,2", "-o", "out", "--write", "all"}, "--write"},
      {{"a.png", "--precompute"}, "--precompute: expected --cache"},
      {{"a.png", "--precompute", "--cache", "c", "--point", "1,2"}, "--precompute: expected no prompt"},
      {{"a.png", "--everything", "--min-area", "5", "--max-area", "4"}, "--min-area: expected at most --max-area"},
      {{"a.png", "--everything", "--points-per-side", "0"}, "--points-per-side"},
      {{"a.png", "--everything", "--box-nms-thresh", "1.5"}, "--box-nms-thresh"},
  };
  for (const auto& [arguments, message] : wrong) {
    std::vector<std::string> all{"segment", "-m", "/nowhere"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ProgramResult result = run_program(all);
    EXPECT_EQ(result.status, 2) << ::testing::PrintToString(arguments);
    EXPECT_TRUE(contains(result.err, message)) << ::testing::PrintToString(arguments) << result.err;
  }
}

TEST(Segment, NeedsAPrompt) {
  const ProgramResult result = run_program({"segment", "-m", exact_windows().model, image_folder(1) / "a.png"});
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "a prompt: --point, --box")) << result.err;
}

TEST(Segment, AModelWithoutAMaskDecoderIsRefused) {
  const fs::path image = image_folder(1) / "a.png";
  const ProgramResult result = run_program({"segment", "-m", small_model(), image, "--point", "1,2"});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(contains(
      result.err, "expected one of Segment Anything, or a semantic segmenter, or CLIPSeg, got a Vision Transformer"))
      << result.err;
  const fs::path encoder = sam_fixture("timm_encoder").model;
  for (const std::vector<std::string>& prompt : {std::vector<std::string>{"--point", "1,2"}, {"--everything"}}) {
    std::vector<std::string> arguments{"segment", "-m", encoder, image};
    arguments.insert(arguments.end(), prompt.begin(), prompt.end());
    const ProgramResult refused = run_program(arguments);
    EXPECT_EQ(refused.status, 1);
    EXPECT_TRUE(contains(refused.err, "got an image encoder alone (--embedding FILE.npy writes its embeddings)"))
        << refused.err;
  }
  const ProgramResult summary = run_program({"inspect", encoder});
  EXPECT_TRUE(contains(summary.out, "decoder       none: embeddings alone")) << summary.out;
}

TEST(Segment, MasksOfImagesAreRefinedAtTheSizeOfTheImage) {
  const PromptFolder files;
  image::Image mask = image::make_image(90, 60, 1);
  for (int64_t y = 20; y < 50; ++y) std::fill(mask.row(y) + 30, mask.row(y) + 70, uint8_t{255});
  image::write_png(files.folder / "mask.png", mask);
  const auto with = [&](const fs::path& file) {
    return segment({files.image, "--mask", file, "--point", "50,30", "--format", "json"});
  };
  const ProgramResult refined = with(files.folder / "mask.png");
  EXPECT_EQ(refined.status, 0) << refined.err;
  EXPECT_NE(refined.out, segmented({files.image, "--point", "50,30", "--format", "json"}).out);
  image::write_png(files.folder / "other.png", image::make_image(90, 61, 1));
  EXPECT_TRUE(contains(with(files.folder / "other.png").err, "other.png: expected a mask with pixels in the object"));
  mask.height = 59;
  mask.pixels.resize(90 * 59);
  image::write_png(files.folder / "other.png", mask);
  EXPECT_TRUE(contains(with(files.folder / "other.png").err, "the image's size 90×60, got 90×59"));
  EXPECT_TRUE(contains(with(files.image).err, "a mask with two values"));
}

// The fixture's model with logits of 0, which are outside the object.
fs::path model_of_empty_masks() {
  const weights::Checkpoint checkpoint = weights::Checkpoint::open(padded_windows().model);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const std::string& name : checkpoint.names()) {
    const bool last = contains(name, "output_hypernetworks_mlps") && contains(name, "layers.2");
    const Tensor tensor = checkpoint.tensor(name);
    tensors.emplace_back(name, last ? Tensor::zeros(tensor.shape()) : tensor);
  }
  const fs::path file = scratch_folder() / "model.safetensors";
  weights::write_safetensors(file, tensors);
  return file;
}

TEST(Segment, TheBoxesOfTextAreThoseOfJson) {
  const PromptFolder files;
  const json masks = json_lines(segmented({files.image, "--point", "36,33", "--format", "json"}).out).at(0)["masks"];
  const std::vector<std::string> lines = lines_of(segmented({files.image, "--point", "36,33"}).out);
  ASSERT_EQ(lines.size(), masks.size() + 1);
  for (size_t m = 0; m < masks.size(); ++m) {
    const auto box = masks[m]["bbox"].get<std::array<int64_t, 4>>();
    const std::array<int64_t, 4> corners{box[0], box[1], box[0] + box[2], box[1] + box[3]};
    std::string text = "  box ";
    for (const int64_t& corner : corners) text += std::to_string(corner) + (&corner == &corners.back() ? "" : ",");
    EXPECT_TRUE(lines[m + 1].ends_with(text)) << lines[m + 1] << text;
  }
  const ProgramResult empty = run_program({"segment", "-m", model_of_empty_masks(), files.image, "--point", "36,33"});
  EXPECT_EQ(empty.status, 0) << empty.err;
  EXPECT_TRUE(contains(empty.out, "  0 pixels  box 0,0,0,0\n")) << empty.out;
}

// What --logits writes for one mask is a mask prompt, without NumPy in between.
TEST(Segment, LogitsOfOneMaskAreAMaskPrompt) {
  const PromptFolder files;
  const fs::path logits = files.folder / "logits.npy", flat = files.folder / "flat.npy";
  segmented({files.image, "--point", "36,33", "--single", "--logits", logits});
  const NpyArray array = read_npy(logits);
  ASSERT_EQ(array.shape, (std::vector<int64_t>{1, 1, 40, 40}));
  write_npy(flat, std::array<int64_t, 2>{40, 40}, array.f32.data());
  EXPECT_EQ(segmented({files.image, "--mask", logits, "--format", "json"}).out,
            segmented({files.image, "--mask", flat, "--format", "json"}).out);
  std::ofstream(files.prompts, std::ios::trunc) << R"({"image": "photo.png", "mask_logits": "logits.npy"})";
  EXPECT_EQ(json_lines(segmented({"--prompts", files.prompts, "--format", "json"}).out).at(0)["masks"].size(), 3u);
}

// Classifiers' commands name the one that runs Segment Anything.
TEST(Segment, OtherCommandsNameThisOne) {
  const fs::path image = image_folder(1) / "a.png", file = scratch_folder() / "out.npy",
                 png = scratch_folder() / "o.png";
  const std::vector<std::vector<std::string>> commands{{"classify", "-m", padded_windows().model, image},
                                                       {"embed", "-m", padded_windows().model, image, "-o", file},
                                                       {"attention", "-m", padded_windows().model, image, "-o", png}};
  for (const std::vector<std::string>& command : commands) {
    const ProgramResult result = run_program(command);
    EXPECT_EQ(result.status, 1) << command[0];
    EXPECT_TRUE(contains(result.err, "a Segment Anything Model, which `vitrail segment`")) << result.err;
  }
}

TEST(Segment, StandardInputNamesImages) {
  const PromptFolder files;
  const std::string once = segmented({files.image, "--point", "5,6", "--format", "json"}).out;
  const std::string list = files.image.string() + "\n" + files.image.string() + "\n";
  EXPECT_EQ(segmented({"-", "--point", "5,6", "--format", "json"}, list).out, once + once);
}

// The only failure is of a prompt; its place in the arrays is empty.
TEST(Segment, AFailedPromptIsTheProgramsStatusAndARowOfNaN) {
  const PromptFolder files;
  std::ofstream(files.prompts, std::ios::trunc) << R"({"image": "photo.png", "points": [[5, 5]]}
{"image": "photo.png", "points": [[500, 5]]}
{"image": "photo.png", "points": [[6, 6]]})";
  const fs::path logits = files.folder / "logits.npy";
  const ProgramResult result = segment({"--prompts", files.prompts, "--format", "json", "--logits", logits});
  EXPECT_EQ(result.status, 1);
  const NpyArray rows = read_npy(logits);
  ASSERT_EQ(rows.shape[0], 3);
  const size_t size = rows.f32.size() / 3;
  for (size_t row = 0; row < 3; ++row) {
    for (const size_t i : {size_t{0}, size - 1}) EXPECT_EQ(std::isnan(rows.f32[row * size + i]), row == 1) << row;
  }
}

}  // namespace
}  // namespace vitrail::testing
