// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/segment/segment_folder.h"

#include <algorithm>
#include <vector>

#include "apps/vitrail/output/output.h"
#include "vitrail/base/error.h"
#include "vitrail/image/encode.h"
#include "vitrail/sam/polygons.h"

namespace vitrail::app {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

// FOLDER/0.png, …: 255 in the object, as segment_anything's scripts/amg.py writes them.
void write_masks(const fs::path& folder, std::span<const SegmentMask> masks) {
  for (size_t id = 0; id < masks.size(); ++id) {
    const sam::BinaryMask mask = sam::decode(masks[id].rle);
    image::Image image{mask.width, mask.height, 1, mask.pixels};
    for (uint8_t& pixel : image.pixels) pixel = pixel != 0 ? 255 : 0;
    image::write_png(folder / (std::to_string(id) + ".png"), image);
  }
}

// The columns of scripts/amg.py; masks of prompts have the number of the prompt instead of point and crop.
void write_csv(const fs::path& file, std::span<const SegmentMask> masks, bool everything) {
  std::string text = "id,area,bbox_x0,bbox_y0,bbox_w,bbox_h,";
  text += everything ? "point_input_x,point_input_y,predicted_iou,stability_score,crop_box_x0,crop_box_y0,crop_box_w,"
                       "crop_box_h\n"
                     : "prompt,predicted_iou,stability_score\n";
  const auto box_text = [](const sam::PixelBox& box) {
    return fmt::format("{},{},{},{}", box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
  };
  for (size_t id = 0; id < masks.size(); ++id) {
    const SegmentMask& mask = masks[id];
    text += fmt::format("{},{},{},", id, sam::area(mask.rle), box_text(mask.box));
    text += everything ? fmt::format("{},{}", mask.points[0][0], mask.points[0][1]) : std::to_string(mask.prompt);
    text += fmt::format(",{},{}", mask.predicted_iou, mask.stability_score);
    text += everything ? "," + box_text(mask.crop) + "\n" : "\n";
  }
  write_text(file, text);
}

Json image_json(int64_t id, const std::string& path, int64_t width, int64_t height, const char* id_name) {
  return {{id_name, id}, {"width", width}, {"height", height}, {"file_name", path}};
}

// The file of an image in the dataset SA-1B.
Json sa1b_json(int64_t id, const std::string& path, const sam::ImageEmbedding& image,
               std::span<const SegmentMask> masks) {
  Json annotations = Json::array();
  for (const SegmentMask& mask : masks) {
    Json record = automatic_record(mask);
    record["id"] = annotations.size();
    annotations.push_back(std::move(record));
  }
  return {{"image", image_json(id, path, image.width, image.height, "image_id")}, {"annotations", annotations}};
}

Json ring_json(const sam::Ring& ring) {
  Json corners = Json::array();
  for (const sam::Corner& corner : ring) corners.push_back({corner.x, corner.y});
  corners.push_back(corners.front());  // GeoJSON's rings end where they begin
  return corners;
}

// GeoJSON (RFC 7946) with pixels as coordinates.
Json polygons_json(std::span<const SegmentMask> masks) {
  Json features = Json::array();
  for (const SegmentMask& mask : masks) {
    Json polygons = Json::array();
    for (const sam::Polygon& polygon : sam::polygons_of(sam::decode(mask.rle))) {
      Json rings = Json::array({ring_json(polygon.outer)});
      for (const sam::Ring& hole : polygon.holes) rings.push_back(ring_json(hole));
      polygons.push_back(std::move(rings));
    }
    features.push_back({{"type", "Feature"},
                        {"id", features.size()},
                        {"geometry", {{"type", "MultiPolygon"}, {"coordinates", std::move(polygons)}}},
                        {"properties",
                         {{"prompt", mask.prompt},
                          {"area", sam::area(mask.rle)},
                          {"predicted_iou", mask.predicted_iou},
                          {"stability_score", mask.stability_score}}}});
  }
  return {{"type", "FeatureCollection"}, {"features", std::move(features)}};
}

}  // namespace

CocoFile::CocoFile(const fs::path& file) : file_(file) { file_.write("{\"annotations\":["); }

void CocoFile::add(const std::string& path, int64_t width, int64_t height, std::span<const SegmentMask> masks) {
  const auto id = static_cast<int64_t>(images_.size()) + 1;
  images_.push_back(image_json(id, path, width, height, "id"));
  for (const SegmentMask& mask : masks) {
    const Json annotation{{"id", ++annotations_},
                          {"image_id", id},
                          {"category_id", 1},
                          {"segmentation", rle_json(mask.rle)},
                          {"area", sam::area(mask.rle)},
                          {"bbox", coco_box(mask)},
                          {"iscrowd", 0},
                          {"score", mask.predicted_iou}};
    file_.write((annotations_ == 1 ? "\n" : ",\n") + json_text(annotation));
  }
}

void CocoFile::finish() {
  const Json categories = Json::array({{{"id", 1}, {"name", "object"}}});
  file_.write("],\n\"images\":" + json_text(images_) + ",\n\"categories\":" + json_text(categories) + "}\n");
  file_.commit();
}

SegmentFolder::SegmentFolder(const SegmentOptions& options)
    : folder_(options.output),
      force_(options.force),
      files_(options.files()),
      opacity_(options.opacity),
      everything_(options.everything) {
  create_output_folder(folder_, "the masks");
  if (!files_.coco) return;
  coco_.emplace(file(folder_ / "coco", ".json", Kind::json));
  names_.name_of("coco.json");  // an image's files have another name
}

std::string SegmentFolder::file(const fs::path& base, const char* extension, Kind kind) const {
  const std::string path = base.string() + extension;
  check_output({"-o", path, kind}, images_read_, force_);
  return path;
}

void SegmentFolder::add(SegmentImage& image, std::span<const SegmentMask> masks) {
  protect(image.path());
  const std::string name = names_.name_of(image.path());
  const fs::path base = folder_ / name;
  if (files_.masks || files_.csv) create_folder(base, "the masks of an image");
  if (files_.overlay)
    image::write_png(file(base, ".png", Kind::png), sam::best_masks_overlay(image.pixels(), masks, opacity_));
  if (files_.masks) write_masks(base, masks);
  if (files_.csv) write_csv(file(base / "metadata", ".csv", Kind::mask_table), masks, everything_);
  if (files_.sa1b) {
    write_text(file(base, ".json", Kind::json),
               json_text(sa1b_json(++images_, image.path(), image.embedding(), masks)) + "\n");
  }
  if (files_.polygons) write_text(file(base, ".geojson", Kind::json), json_text(polygons_json(masks)) + "\n");
  if (coco_) coco_->add(image.path(), image.embedding().width, image.embedding().height, masks);
}

void SegmentFolder::finish() {
  if (coco_) coco_->finish();
}

}  // namespace vitrail::app
