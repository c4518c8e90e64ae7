// SPDX-License-Identifier: Apache-2.0
// The files that `vitrail segment` writes: masks in a folder, and image embeddings in a cache.
#include <cmath>
#include <fstream>

#include "tests/apps/segment_runs.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/sam/rle.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_json(const fs::path& file) { return json::parse(content_of(file)); }

sam::BinaryMask mask_of(const json& rle) {
  return sam::decode(sam::from_coco(rle["counts"].get<std::string>(), rle["size"][1], rle["size"][0], "rle"));
}

const Arguments kPoint{"--point", "36,33"};
// Everything without thresholds, so that random weights give masks.
const Arguments kEverything{"--everything",
                            "--points-per-side",
                            "3",
                            "--pred-iou-thresh",
                            "0",
                            "--stability-score-thresh",
                            "0",
                            "--box-nms-thresh",
                            "1"};

// Twice the area inside a closed ring.
int64_t area_of(const json& ring) {
  int64_t twice = 0;
  for (size_t i = 0; i + 1 < ring.size(); ++i) {
    twice += ring[i][0].get<int64_t>() * ring[i + 1][1].get<int64_t>() -
             ring[i + 1][0].get<int64_t>() * ring[i][1].get<int64_t>();
  }
  EXPECT_EQ(ring.front(), ring.back());
  return twice;
}

TEST(SegmentFiles, AllDescribeTheMasksOfTheJson) {
  const fs::path folder = scratch_folder() / "new/out";
  const Arguments arguments =
      Arguments{photo_file(), "--format", "json", "-o", folder, "--write", "overlay,masks,csv,coco,sa1b,polygons"} +
      kEverything;
  const json masks = json::parse(segment_text(arguments))["masks"];
  ASSERT_GT(masks.size(), 5u);
  const std::vector<std::string> rows = lines_of(content_of(folder / "photo/metadata.csv"));
  ASSERT_EQ(rows.size(), masks.size() + 1);
  EXPECT_EQ(rows[0],
            "id,area,bbox_x0,bbox_y0,bbox_w,bbox_h,point_input_x,point_input_y,predicted_iou,stability_score,"
            "crop_box_x0,crop_box_y0,crop_box_w,crop_box_h");
  const json coco = read_json(folder / "coco.json"), sa1b = read_json(folder / "photo.json");
  const json features = read_json(folder / "photo.geojson")["features"];
  ASSERT_EQ(coco["annotations"].size(), masks.size());
  ASSERT_EQ(sa1b["annotations"].size(), masks.size());
  ASSERT_EQ(features.size(), masks.size());
  EXPECT_EQ(coco["images"][0], (json{{"id", 1}, {"width", 61}, {"height", 90}, {"file_name", photo_file().string()}}));
  EXPECT_EQ(sa1b["image"]["image_id"], 1);
  for (size_t i = 0; i < masks.size(); ++i) {
    SCOPED_TRACE(i);
    const json& record = masks[i];
    const sam::BinaryMask mask = mask_of(record["segmentation"]);
    const image::Image png =
        image::read_image(folder / "photo" / (std::to_string(i) + ".png"), {.mode = image::ColorMode::grey});
    for (size_t p = 0; p < mask.pixels.size(); ++p) ASSERT_EQ(png.pixels[p], mask.pixels[p] * 255) << p;
    EXPECT_TRUE(rows[i + 1].starts_with(str(i, ",", record["area"].get<int64_t>(), ","))) << rows[i + 1];
    json annotation = sa1b["annotations"][i];
    EXPECT_EQ(annotation["id"], i);
    annotation.erase("id");
    EXPECT_EQ(annotation, record);
    const json& in_coco = coco["annotations"][i];
    EXPECT_EQ(in_coco["id"], i + 1);
    EXPECT_EQ(in_coco["segmentation"], record["segmentation"]);
    EXPECT_EQ(in_coco["bbox"][2], record["area"] == 0 ? 0 : record["bbox"][2].get<int>() + 1);
    int64_t twice = 0;
    for (const json& polygon : features[i]["geometry"]["coordinates"]) {
      for (const json& ring : polygon) {
        EXPECT_EQ(ring.front(), ring.back());  // GeoJSON's rings are closed
        twice += area_of(ring);
      }
    }
    EXPECT_EQ(twice, 2 * record["area"].get<int64_t>());
  }
}

// Pixels outside of all shown masks are those of the photograph, and all others have another colour.
TEST(SegmentFiles, TheOverlayShowsTheBestMaskOfAPrompt) {
  const fs::path folder = scratch_folder() / "out";
  const json masks =
      json::parse(segment_text(Arguments{photo_file(), "--format", "json", "-o", folder} + kPoint))["masks"];
  const auto best = std::ranges::max_element(masks, {}, [](const json& mask) { return mask["iou"].get<double>(); });
  const sam::BinaryMask shown = mask_of((*best)["rle"]);
  const image::Image photo = image::read_image(photo_file()), overlay = image::read_image(folder / "photo.png");
  int64_t wrong = 0;
  for (size_t i = 0; i < shown.pixels.size(); ++i) {
    const bool equal = std::equal(&photo.pixels[3 * i], &photo.pixels[3 * i] + 3, &overlay.pixels[3 * i]);
    wrong += equal == (shown.pixels[i] != 0);
  }
  EXPECT_LE(wrong, sam::area(shown) / 100) << "a pixel may have the colour of its mask";
}

TEST(SegmentFiles, ImagesOfOneNameHaveFilesOfTheirOwn) {
  const fs::path folder = scratch_folder() / "out", other = scratch_folder() / "coco.png";
  fs::copy_file(photo_file(), other);
  segment_text(Arguments{photo_file(), photo_file(), other, "-o", folder, "--write", "coco,sa1b"} + kPoint);
  EXPECT_EQ(read_json(folder / "photo-2.json")["image"]["image_id"], 2);
  EXPECT_EQ(read_json(folder / "coco-2.json")["image"]["image_id"], 3);
  const json coco = read_json(folder / "coco.json");
  EXPECT_EQ(coco["images"].size(), 3u);
  EXPECT_EQ(coco["annotations"].size(), 9u);
  EXPECT_EQ(coco["annotations"][8]["image_id"], 3);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(coco["annotations"][i]["id"], i + 1) << "over all images";
}

std::vector<fs::path> paths_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

Arguments cached(const fs::path& cache) { return Arguments{"--format", "json", "--cache", cache} + kPoint; }

TEST(SegmentCache, LaterRunsHaveTheResultsOfTheFirst) {
  const fs::path cache = scratch_folder() / "new/cache";
  const std::string first = segment_text(Arguments{photo_file()} + cached(cache));
  ASSERT_EQ(paths_in(cache).size(), 1u);
  const auto written = fs::last_write_time(paths_in(cache)[0]);
  EXPECT_EQ(segment_text(Arguments{photo_file()} + cached(cache)), first);
  EXPECT_EQ(paths_in(cache).size(), 1u);
  EXPECT_EQ(fs::last_write_time(paths_in(cache)[0]), written);
}

// The key is the content of the file: bytes that are no image have masks if there is an embedding of them.
TEST(SegmentCache, ACachedImageIsNotDecoded) {
  const fs::path cache = scratch_folder(), odd = scratch_folder() / "odd.png";
  std::ofstream(odd) << "not an image";
  const json decoded = json::parse(segment_text(Arguments{photo_file()} + cached(cache)));
  const std::string text = content_of(odd);
  fs::rename(paths_in(cache)[0], cache / (sha256(std::as_bytes(std::span(text))) + ".safetensors"));
  EXPECT_EQ(json::parse(segment_text(Arguments{odd} + cached(cache)))["masks"], decoded["masks"]);
}

TEST(SegmentCache, PrecomputeFillsIt) {
  const fs::path cache = scratch_folder(), images = image_folder(3);
  EXPECT_EQ(segment_text({images, "--cache", cache, "--precompute"}), "");
  ASSERT_EQ(paths_in(cache).size(), 3u);
  std::ofstream(images / "d.png") << "not an image";
  const ProgramResult result =
      run_program(Arguments{"segment", "-m", exact_windows().model, images, "--cache", cache, "--precompute"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(paths_in(cache).size(), 3u);
  segment_text(Arguments{images / "a.png", images / "c.png"} + cached(cache));
  EXPECT_EQ(paths_in(cache).size(), 3u);
}

TEST(SegmentCache, AnotherModelsEmbeddingsAndDamagedFilesAreRefused) {
  const fs::path cache = scratch_folder();
  segment_text(Arguments{photo_file()} + cached(cache));
  const auto refused = [&](const std::string& model, const std::string& message) {
    const ProgramResult result = run_program(Arguments{"segment", "-m", model, photo_file()} + cached(cache));
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.err, message)) << result.err;
    EXPECT_TRUE(json_lines(result.out).at(0).contains("error"));
  };
  refused(padded_windows().model, "an embedding of this model");
  const fs::path file = paths_in(cache)[0];
  fs::resize_file(file, fs::file_size(file) - 1);
  refused(exact_windows().model, file.string());
}

}  // namespace
}  // namespace vitrail::testing
