// SPDX-License-Identifier: Apache-2.0
// Frames of a video on standard input: --frame-size, --mjpeg and --drop-frames of all commands that run images by
// themselves, ends of streams, and what is no stream.
#include <map>

#include "tests/apps/option_effects.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/analysis/byte_tracker.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kFrameWidth = 40, kFrameHeight = 32;
const Arguments kRawFrames{"--frame-size", "40,32"};

image::Image frame_image(int64_t seed) {
  image::Image frame = image::make_image(kFrameWidth, kFrameHeight, 3);
  for (size_t i = 0; i < frame.pixels.size(); ++i)
    frame.pixels[i] = static_cast<uint8_t>((i * i + i * static_cast<size_t>(seed) * 31) % 251);
  return frame;
}

std::string raw_frame(int64_t seed) {
  const image::Image frame = frame_image(seed);
  return {frame.pixels.begin(), frame.pixels.end()};
}

std::string jpeg_frame(int64_t seed) {
  const std::vector<uint8_t> bytes = image::encode_jpeg(frame_image(seed), 90);
  return {bytes.begin(), bytes.end()};
}

// The command of a task with a model for it.
Arguments task_command(const std::string& command) {
  static const std::map<std::string, std::string> models{
      {"classify", "models/timm_token"}, {"zeroshot", "models/hf_clip"}, {"segment", "semantic/linear"},
      {"depth", "depth/relative"},       {"matte", "vitmatte/windows"},  {"detect", "yolos/mid"},
      {"pose", "vitpose/simple"}};
  Arguments arguments{command, "-m"};
  if (command == "anomaly") {
    const std::string bank = scratch_folder() / "bank";
    run({"anomaly", "fit", noise_folder(), "-o", bank, "-m", small_model(), "--quiet"});
    return arguments + Arguments{bank};
  }
  arguments.push_back(fixture(models.at(command) + "/config.json").parent_path());
  if (command == "zeroshot") return arguments + Arguments{"--labels", "cat,dog"};
  if (command == "matte") {
    const fs::path trimap = scratch_folder() / "trimap.png";
    image::Image grey = image::make_image(kFrameWidth, kFrameHeight, 1);
    for (size_t i = 0; i < grey.pixels.size(); ++i) grey.pixels[i] = i % 3 == 0 ? 255 : 128;
    image::write_png(trimap, grey);
    return arguments + Arguments{"--trimap", trimap};
  }
  return arguments;
}

std::vector<json> lines_for(const Arguments& arguments, const std::string& stream, int status = 0) {
  const ProgramResult ended = run_program(arguments, stream);
  EXPECT_EQ(ended.status, status) << ended.err;
  return json_lines(ended.out);
}

// Each frame has the result of the image in a file.
void expect_results_of_files(const std::string& command, const Arguments& more, const std::string& stream,
                             const std::vector<fs::path>& files) {
  const Arguments task = task_command(command);
  const std::vector<json> lines = lines_for(task + Arguments{"-"} + more, stream);
  ASSERT_EQ(lines.size(), files.size()) << command;
  for (size_t i = 0; i < files.size(); ++i) {
    const bool has_text = command == "classify" || command == "zeroshot";
    json of_file = json_of(task + (has_text ? Arguments{files[i], "--format", "json"} : Arguments{files[i]}));
    of_file.erase("path");
    of_file["frame"] = i;
    EXPECT_EQ(lines[i], of_file) << command;
  }
}

void check_frame_size(const std::string& command) {
  const fs::path folder = scratch_folder();
  std::vector<fs::path> files;
  std::string stream;
  for (int64_t i = 0; i < 3; ++i) {
    files.push_back(folder / (std::to_string(i) + ".png"));
    image::write_png(files.back(), frame_image(i));
    stream += raw_frame(i);
  }
  expect_results_of_files(command, kRawFrames, stream, files);
}

void check_mjpeg(const std::string& command) {
  const fs::path folder = scratch_folder();
  std::vector<fs::path> files;
  std::string stream;
  for (int64_t i = 0; i < 3; ++i) {
    files.push_back(folder / (std::to_string(i) + ".jpg"));
    std::ofstream(files.back()) << jpeg_frame(i);
    stream += jpeg_frame(i) + "--boundary\r\n";
  }
  expect_results_of_files(command, {"--mjpeg"}, stream, files);
}

void check_drop_frames(const std::string& command) {
  constexpr int64_t kFrames = 60;
  std::string stream;
  for (int64_t i = 0; i < kFrames; ++i) stream += raw_frame(i);
  const std::vector<json> lines =
      lines_for(task_command(command) + Arguments{"-", "--drop-frames"} + kRawFrames, stream);
  int64_t last = -1;
  for (const json& line : lines) {
    EXPECT_EQ(line["frame"], last + 1 + line["dropped"].get<int64_t>());
    last = line["frame"];
  }
  EXPECT_EQ(last, kFrames - 1) << "the newest frame stays";
  const ProgramResult alone = run_program(task_command(command) + Arguments{noise_folder(), "--drop-frames"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_TRUE(contains(alone.err, "--drop-frames: expected --frame-size or --mjpeg beside it")) << alone.err;
}

// The lines that --track makes of those without it, which have all objects above a score of 0.1.
std::vector<json> tracked(std::vector<json> lines) {
  constexpr float kThreshold = 0.5F;
  analysis::ByteTracker tracker({.high_score = 0.5, .low_score = 0.1, .new_score = 0.6});
  for (json& line : lines) {
    std::vector<analysis::ScoredBox> boxes;
    for (const json& each : line["detections"]) boxes.push_back({each["box"], each["score"], each["index"]});
    const auto ids = tracker.update(boxes, line.value("dropped", 0) + 1);
    json kept = json::array();
    for (size_t i = 0; i < ids.size(); ++i) {
      json object = line["detections"][i];
      if (ids[i]) object["track"] = *ids[i];
      if (ids[i] || object["score"] > kThreshold) kept.push_back(object);
    }
    line["detections"] = kept;
  }
  return lines;
}

// The files of objects have the identities of the lines.
void expect_tracks_in_files(const Arguments& frames, const std::string& stream, const std::vector<json>& lines) {
  const fs::path folder = scratch_folder();
  run_program(frames + Arguments{"--track", "--coco", folder / "all.json", "--csv", folder / "all.csv"}, stream);
  const json results = json::parse(content_of(folder / "all.json"));
  const std::vector<std::string> rows = lines_of(content_of(folder / "all.csv"));
  size_t i = 0;
  for (const json& line : lines) {
    for (const json& object : line["detections"]) {
      const std::string track = object.contains("track") ? object["track"].dump() : "";
      ASSERT_LT(i, results.size());
      EXPECT_EQ(results[i].contains("track_id") ? results[i]["track_id"].dump() : "", track) << results[i];
      const std::string& row = rows.at(++i);
      EXPECT_EQ(row.substr(row.rfind(',') + 1), track) << row;
    }
  }
  EXPECT_EQ(i, results.size());
}

void check_track_of_detect() {
  std::string stream;
  for (int64_t i = 0; i < 12; ++i) stream += raw_frame(i / 3);
  const Arguments frames = task_command("detect") + Arguments{"-"} + kRawFrames;
  const std::vector<json> all = tracked(lines_for(frames + Arguments{"--threshold", "0.1"}, stream));
  EXPECT_EQ(lines_for(frames + Arguments{"--track"}, stream), all);
  expect_tracks_in_files(frames, stream, all);
  EXPECT_TRUE(std::ranges::any_of(all, [](const json& line) {
    return std::ranges::any_of(line["detections"], [](const json& each) { return each["score"] < 0.5; });
  })) << "no object of the second round";
  EXPECT_EQ(all[1]["detections"][0]["track"], all[0]["detections"][0]["track"]);
  // Images in files are frames too.
  const fs::path folder = scratch_folder();
  for (int64_t i = 0; i < 2; ++i) image::write_png(folder / (std::to_string(i) + ".png"), frame_image(0));
  const std::vector<json> files = lines_for(task_command("detect") + Arguments{folder, "--track"}, "");
  EXPECT_EQ(files[1]["detections"], all[1]["detections"]);
  const ProgramResult text = run_program(frames + Arguments{"--track", "--format", "text"}, raw_frame(0));
  EXPECT_TRUE(contains(text.out, " #1")) << text.out;
}

void check_track_of_pose() {
  const std::vector<json> lines =
      lines_for(task_command("pose") + Arguments{"-", "--track"} + kRawFrames, raw_frame(0) + raw_frame(1));
  for (const json& line : lines) EXPECT_EQ(line["persons"][0]["track"], 1);
}

class FramesTest : public ::testing::Test {
 protected:
  FramesTest() { ::setenv("D", folder_.c_str(), 1); }
  const fs::path folder_ = scratch_folder();
};

const Arguments& classify_frames() {
  static const Arguments arguments = task_command("classify") + Arguments{"-"};
  return arguments;
}

TEST_F(FramesTest, EachFrameHasALineInItsOrder) {
  std::string stream;
  for (int64_t i = 0; i < 500; ++i) stream += raw_frame(i);
  const std::vector<json> lines = lines_for(classify_frames() + kRawFrames, stream);
  ASSERT_EQ(lines.size(), 500U);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["frame"], i);
  EXPECT_NE(lines[0]["predictions"], lines[1]["predictions"]);
  EXPECT_FALSE(lines[0].contains("dropped"));
}

// A program that waits for the result of a frame before it gives the next one gets it.
TEST_F(FramesTest, AResultDoesNotWaitForTheNextFrame) {
  for (const auto& [option, frame] :
       {std::pair{"--frame-size 40,32", raw_frame(1)}, std::pair{"--mjpeg", jpeg_frame(1)}}) {
    std::ofstream(folder_ / "frame", std::ios::trunc) << frame;
    EXPECT_EQ(
        shell(std::string("rm -f $D/stream $D/out; mkfifo $D/stream $D/out; timeout 60 $V classify -m $M - ") + option +
              " <$D/stream >$D/out & exec 4>$D/stream 5<$D/out; for i in 0 1 2; do cat $D/frame >&4; "
              "read -r line <&5 || exit 9; case $line in *'\"frame\":'$i,*) ;; *) exit 8;; esac; done; "
              "exec 4>&-; wait $!"),
        0)
        << option;
  }
}

TEST_F(FramesTest, ACutFrameAtTheEndIsAnError) {
  const auto failed = [](const Arguments& more, const std::string& stream) {
    const std::vector<json> lines = lines_for(classify_frames() + more, stream, 1);
    EXPECT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[1]["frame"], 1);
    return lines[1].value("error", "");
  };
  EXPECT_EQ(failed(kRawFrames, raw_frame(1) + raw_frame(2).substr(0, 100)),
            "frame 1: standard input: expected frames of 3840 bytes, which are 40×32 pixels in RGB (--frame-size), got "
            "only 100 bytes of the last one");
  EXPECT_EQ(failed({"--frame-size", "41,32"}, raw_frame(1) + raw_frame(2)).substr(0, 59),
            "frame 1: standard input: expected frames of 3936 bytes, whi");
  EXPECT_EQ(failed({"--mjpeg"}, jpeg_frame(1) + jpeg_frame(2).substr(0, 300)),
            "frame 1: standard input: expected a complete JPEG image, got its beginning alone");
  // The last complete frame is not dropped for it.
  const std::vector<json> lines = lines_for(classify_frames() + kRawFrames + Arguments{"--drop-frames"},
                                            raw_frame(1) + raw_frame(2).substr(0, 100), 1);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].contains("predictions"));
}

TEST_F(FramesTest, ADamagedFrameKeepsItsPlace) {
  std::string damaged = jpeg_frame(1);
  damaged[damaged.find("\xff\xc0") + 4] = '\x01';  // a precision that no decoder has
  const std::vector<json> lines = lines_for(classify_frames() + Arguments{"--mjpeg"},
                                            jpeg_frame(0) + damaged + jpeg_frame(1).substr(0, 400) + jpeg_frame(2), 1);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(lines[0].contains("predictions"));
  EXPECT_TRUE(lines[1]["error"].get<std::string>().starts_with("frame 1: standard input: ")) << lines[1];
  EXPECT_TRUE(lines[2].contains("error"));
  EXPECT_TRUE(lines[3].contains("predictions"));
}

TEST_F(FramesTest, WhatIsNoMotionJpegIsOneError) {
  const ProgramResult ended = run_program(classify_frames() + Arguments{"--mjpeg"}, raw_frame(1));
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.err,
            "vitrail: error: standard input: expected motion JPEG (--mjpeg), whose frames begin with the bytes FF D8 "
            "FF, got 3840 bytes without any\n");
  for (const Arguments& option : {kRawFrames, Arguments{"--mjpeg"}}) {
    const ProgramResult none = run_program(classify_frames() + option);
    EXPECT_EQ(none.status, 0);
    EXPECT_EQ(none.err, "vitrail: warning: no frames\n");
  }
}

TEST_F(FramesTest, OptionsThatDoNotFitAreRefused) {
  const auto message = [](const Arguments& arguments) {
    const ProgramResult ended = run_program(arguments, raw_frame(1));
    EXPECT_EQ(ended.status, 2) << ended.err;
    return ended.err;
  };
  const Arguments task = task_command("classify");
  EXPECT_TRUE(
      contains(message(task + Arguments{noise_folder()} + kRawFrames), "--frame-size: expected - as the only INPUT"));
  EXPECT_TRUE(contains(message(task + Arguments{"-", noise_folder(), "--mjpeg"}), "--mjpeg: expected - as the only"));
  EXPECT_TRUE(
      contains(message(classify_frames() + kRawFrames + Arguments{"--mjpeg"}), "--mjpeg: expected no --frame-size"));
  EXPECT_TRUE(contains(message(classify_frames() + kRawFrames + Arguments{"--batch", "2"}),
                       "--batch: has no effect on frames"));
  for (const std::string size : {"40", "40x32", "0,32", "40,", "40,32,3", "a,b", "70000,1"})
    EXPECT_TRUE(contains(message(classify_frames() + Arguments{"--frame-size", size}), "--frame-size")) << size;
  EXPECT_TRUE(
      contains(message(task_command("depth") + Arguments{"-", "--common-scale"} + kRawFrames), "frames have no end"));
  const ProgramResult large = run_program(classify_frames() + Arguments{"--frame-size", "65535,65535"});
  EXPECT_TRUE(contains(large.err, "--frame-size: expected at most")) << large.err;
}

TEST_F(FramesTest, OtherFormatsNameTheFrame) {
  const ProgramResult text =
      run_program(classify_frames() + kRawFrames + Arguments{"--format", "text"}, raw_frame(1) + raw_frame(2));
  EXPECT_TRUE(text.out.starts_with("frame 0\n  ")) << text.out;
  const ProgramResult csv = run_program(classify_frames() + kRawFrames + Arguments{"--format", "csv"}, raw_frame(1));
  EXPECT_TRUE(contains(csv.out, "\n0,1,")) << csv.out;
  const ProgramResult detected =
      run_program(task_command("detect") + Arguments{"-", "--format", "text"} + kRawFrames, raw_frame(1));
  EXPECT_TRUE(detected.out.starts_with("frame 0: ")) << detected.out;
}

// The prompt is that of each frame.
TEST_F(FramesTest, SegmentAnythingHasThePromptOfAllFrames) {
  std::string stream;
  for (int64_t i = 0; i < 3; ++i) {
    image::write_png(folder_ / (std::to_string(i) + ".png"), frame_image(i));
    stream += raw_frame(i);
  }
  const fs::path mask = folder_ / "mask.png";
  image::Image left = image::make_image(kFrameWidth, kFrameHeight, 1);
  for (int64_t y = 0; y < kFrameHeight; ++y) std::fill_n(left.row(y), kFrameWidth / 2, 255);
  image::write_png(mask, left);
  const Arguments model{"segment", "-m", sam_fixture("windows").model}, frames = Arguments{"-"} + kRawFrames;
  for (const Arguments& prompt : {Arguments{"--point", "30,20", "--point", "5,5,0"},
                                  {"--box", "3,4,30,25", "--single"},
                                  {"--mask", mask},
                                  {"--everything", "--points-per-side", "2", "--pred-iou-thresh", "0"}}) {
    const std::vector<json> lines = lines_for(model + frames + prompt, stream);
    ASSERT_EQ(lines.size(), 3U);
    for (size_t i = 0; i < lines.size(); ++i) {
      json of_file = json_of(model + prompt + Arguments{folder_ / (std::to_string(i) + ".png"), "--format", "json"});
      of_file.erase("image");
      of_file["frame"] = i;
      EXPECT_EQ(lines[i], of_file) << prompt.front();
    }
  }
  const Arguments point{"--point", "30,20"};
  run_program(model + frames + point + Arguments{"--render", folder_ / "masks", "--opacity", "1"}, stream);
  run_program(model + point + Arguments{folder_ / "1.png", "-o", folder_ / "files", "--opacity", "1"});
  EXPECT_EQ(image::read_image(folder_ / "masks/1.png").pixels, image::read_image(folder_ / "files/1.png").pixels);
  const json outside = lines_for(model + frames + Arguments{"--point", "99,1"}, raw_frame(0), 1).at(0);
  EXPECT_EQ(outside["frame"], 0);
  EXPECT_TRUE(contains(outside["error"], "prompt")) << outside;
}

TEST_F(FramesTest, SegmentAnythingRefusesWhatIsOfImages) {
  const Arguments command =
      Arguments{"segment", "-m", sam_fixture("windows").model, "-", "--point", "1,1"} + kRawFrames;
  const auto message = [&](const Arguments& more) {
    const ProgramResult ended = run_program(command + more, raw_frame(1));
    EXPECT_EQ(ended.status, 2) << ended.err;
    return ended.err;
  };
  for (const Arguments& option : {Arguments{"--output", folder_ / "masks"},
                                  {"--cache", folder_ / "cache"},
                                  {"--logits", folder_ / "x.npy"},
                                  {"--preset", "medsam"}})
    EXPECT_TRUE(contains(message(option), option.front() + ": does not apply to frames")) << message(option);
  EXPECT_TRUE(contains(message({"--format", "text"}), "--format: expected json for frames, got text"));
  EXPECT_TRUE(contains(message({"--text", "a cat"}), "--text: expected no --point beside it"));
}

// Files have the frame's number; COCO's results have it as image_id.
TEST_F(FramesTest, FilesHaveTheNumbersOfFrames) {
  run_program(task_command("detect") + kRawFrames +
                  Arguments{"-", "--threshold", "0", "--render", folder_ / "boxes", "--coco", folder_ / "all.json"},
              raw_frame(1) + raw_frame(2));
  EXPECT_TRUE(fs::exists(folder_ / "boxes/0.png"));
  EXPECT_EQ(image::read_image(folder_ / "boxes/1.png").width, kFrameWidth);
  const json results = json::parse(content_of(folder_ / "all.json"));
  EXPECT_EQ(results.front()["image_id"], 0);
  EXPECT_EQ(results.back()["image_id"], 1);
}

// The first signal ends the stream after the frame that runs, and files of all frames are complete.  A background job
// of a shell ignores SIGINT, hence env.
TEST_F(FramesTest, ASignalEndsTheStream) {
  std::ofstream(folder_ / "frame") << raw_frame(1);
  ::setenv("Y", fixture("yolos/mid/config.json").parent_path().c_str(), 1);
  for (const std::string signal : {"INT", "TERM", "HUP"}) {
    EXPECT_EQ(shell("rm -f $D/stream $D/out $D/all.json; mkfifo $D/stream $D/out; env --default-signal $V detect -m $Y "
                    "- --frame-size "
                    "40,32 --threshold 0 --coco $D/all.json <$D/stream >$D/out & exec 4>$D/stream 5<$D/out; "
                    "cat $D/frame >&4; read -r line <&5; kill -" +
                    signal + " $!; wait $!"),
              0)
        << signal;
    EXPECT_EQ(json::parse(content_of(folder_ / "all.json")).size(), 9U) << signal;
  }
}

TEST_F(FramesTest, AClosedOutputEndsTheProgram) {
  std::ofstream frames(folder_ / "frames");
  for (int64_t i = 0; i < 200; ++i) frames << raw_frame(i);
  frames.close();
  EXPECT_EQ(shell("(timeout 60 $V classify -m $M - --frame-size 40,32 <$D/frames; echo $? >$D/status) | head -n 1 "
                  ">$D/out; grep -q '\"frame\":0,' $D/out"),
            0);
  EXPECT_NE(content_of(folder_ / "status"), "124\n") << "it waits";
  EXPECT_EQ(shell("$V classify -m $M - --frame-size 40,32 <&- 2>$D/err"), 1);
  EXPECT_TRUE(contains(content_of(folder_ / "err"), "standard input: read failed")) << content_of(folder_ / "err");
}

}  // namespace

OptionEffects frame_option_effects() {
  OptionEffects effects;
  for (const std::string command : {"classify", "zeroshot", "segment", "anomaly", "depth", "matte", "detect", "pose"}) {
    effects.push_back({command, "--frame-size", [command] { check_frame_size(command); }});
    effects.push_back({command, "--mjpeg", [command] { check_mjpeg(command); }});
    effects.push_back({command, "--drop-frames", [command] { check_drop_frames(command); }});
  }
  effects.push_back({"detect", "--track", check_track_of_detect});
  effects.push_back({"pose", "--track", check_track_of_pose});
  return effects;
}

}  // namespace vitrail::testing
