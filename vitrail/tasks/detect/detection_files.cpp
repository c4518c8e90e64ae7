// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/detect/detection_files.h"

#include <algorithm>

#include "vitrail/base/csv.h"
#include "vitrail/base/text.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/sam/segment_masks_internal.h"
#include "vitrail/tasks/detect/coco_results_internal.h"

namespace vitrail::tasks {
namespace {

std::string coco_results(const std::string& path, const Detections& detections) {
  const nlohmann::ordered_json id = coco_image_id(path);
  return join(detections, kCocoSeparator, [&](const Detection& each) {
    const std::array<double, 4> box{each.box[0], each.box[1], each.box[2], each.box[3]};  // differences are exact
    nlohmann::ordered_json record{{"image_id", id},
                                  {"category_id", each.index},
                                  {"bbox", {box[0], box[1], box[2] - box[0], box[3] - box[1]}},
                                  {"score", each.score}};
    if (each.mask) record["segmentation"] = sam::rle_json(*each.mask);
    if (each.track) record[kCocoTrack] = *each.track;
    return pipeline::json_line(record);
  });
}

std::string yolo_lines(const Item& item, const Detections& detections) {
  const auto width = static_cast<float>(item.width), height = static_cast<float>(item.height);
  return join(detections, "", [&](const Detection& each) {
    const auto share = [&](size_t side) {
      return std::clamp(each.box[side] / (side % 2 == 0 ? width : height), 0.0F, 1.0F);
    };
    const float left = share(0), top = share(1), right = share(2), bottom = share(3);
    return str(each.index, " ", (left + right) / 2, " ", (top + bottom) / 2, " ", right - left, " ", bottom - top, " ",
               each.score, "\n");
  });
}

std::string csv_rows(const std::string& path, const Detections& detections) {
  return join(detections, "", [&](const Detection& each) {
    const std::string track = each.track ? std::to_string(*each.track) : "";
    return str(csv_field(path), ",", csv_field(each.label), ",", each.index, ",", each.score, ",", join(each.box, ","),
               ",", track, "\n");
  });
}

}  // namespace

std::vector<FileKind> detection_file_kinds() {
  const std::string header = "image,label,index,score,x1,y1,x2,y2,track\n";
  return {coco_results_kind(),
          {.name = "yolo",
           .help = "Folder for NAME.txt of each image, a line with class, box and score for each object, as of YOLO",
           .start = {},
           .extension = "txt",
           .media_type = "text/plain"},
          {.name = "csv",
           .help = "File for a row for each object of all images",
           .start = header,
           .media_type = "text/csv",
           .joint = true}};
}

std::string detection_file(const std::string& kind, const Item& item, const Detections& detections) {
  if (kind == "coco") return coco_results(item.name, detections);
  return kind == "yolo" ? yolo_lines(item, detections) : csv_rows(item.name, detections);
}

}  // namespace vitrail::tasks
