// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/pose/poses.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/text.h"
#include "vitrail/image/draw.h"
#include "vitrail/models/vitpose/config.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/detect/coco_results_internal.h"

namespace vitrail::tasks {
namespace {

constexpr image::PixelColor kLeft{0, 160, 255}, kRight{255, 128, 0}, kMiddle{0, 210, 0}, kBox{255, 255, 255};

// The colours of the key points.
std::vector<image::PixelColor> side_colors(const std::vector<std::string>& names) {
  std::vector<image::PixelColor> colors;
  for (const std::string& name : names) {
    const models::BodySide side = models::side_of(name);
    colors.push_back(side == models::BodySide::left ? kLeft : side == models::BodySide::right ? kRight : kMiddle);
  }
  return colors;
}

}  // namespace

double Pose::score() const {
  double sum = 0;
  for (const Keypoint& each : keypoints) sum += static_cast<double>(each.score);
  return keypoints.empty() ? 0 : box.score * sum / static_cast<double>(keypoints.size());
}

std::vector<double> coco_keypoints(const Pose& pose) {
  std::vector<double> values;
  for (const auto& [x, y, score] : pose.keypoints) {
    for (const double value : {x, y, static_cast<double>(score)})
      values.push_back(static_cast<double>(static_cast<float>(value)));
  }
  return values;
}

std::string coco_poses(const std::string& path, const std::vector<Pose>& poses) {
  const nlohmann::ordered_json id = coco_image_id(path);
  return join(poses, kCocoSeparator, [&](const Pose& pose) {
    nlohmann::ordered_json record{{"image_id", id},
                                  {"category_id", pose.box.category},
                                  {"keypoints", coco_keypoints(pose)},
                                  {"score", static_cast<float>(pose.score())}};
    if (pose.track) record[kCocoTrack] = *pose.track;
    return pipeline::json_line(record);
  });
}

std::string poses_json(const std::string& path, const Skeleton& skeleton, const std::vector<Pose>& poses) {
  nlohmann::ordered_json object{
      {"path", path}, {"names", skeleton.keypoints}, {"limbs", skeleton.limbs}, {"persons", nlohmann::json::array()}};
  for (const Pose& pose : poses) {
    nlohmann::ordered_json keypoints = nlohmann::ordered_json::array();
    for (const auto& [x, y, score] : pose.keypoints)
      keypoints.push_back({static_cast<float>(x), static_cast<float>(y), score});
    const auto& [left, top, width, height] = pose.box.box;
    object["persons"].push_back({{"label", pose.box.label},
                                 {"score", static_cast<float>(pose.score())},
                                 {"box", {left, top, left + width, top + height}},
                                 {"keypoints", keypoints}});
    if (pose.track) object["persons"].back()["track"] = *pose.track;
  }
  return pipeline::json_line(object);
}

Tensor poses_array(const Skeleton& skeleton, const std::vector<Pose>& poses) {
  const Tensor array = Tensor::empty({std::ssize(poses), std::ssize(skeleton.keypoints), 3});
  float* to = array.data<float>();
  for (const Pose& pose : poses) {
    for (const auto& [x, y, score] : pose.keypoints) {
      *to++ = static_cast<float>(x);
      *to++ = static_cast<float>(y);
      *to++ = score;
    }
  }
  return array;
}

image::Image poses_overlay(const image::Image& photo, const Skeleton& skeleton, const std::vector<Pose>& poses,
                           double threshold) {
  image::Image image = image::to_image(photo, image::ColorMode::rgb);
  const std::vector<image::PixelColor> colors = side_colors(skeleton.keypoints);
  for (const Pose& pose : poses) {
    const auto& [left, top, width, height] = pose.box.box;
    const double side = std::min(std::max(width, height), static_cast<double>(std::max(image.width, image.height)));
    const double radius = std::max(1.5, side / 100);
    const auto pixel = [](double position) { return static_cast<int64_t>(std::lround(position)); };
    image::draw_rectangle({pixel(left), pixel(top), pixel(left + width), pixel(top + height)}, 1, kBox, image);
    const auto is_seen = [&](int64_t k) {
      return static_cast<double>(pose.keypoints[static_cast<size_t>(k)].score) > threshold;
    };
    const auto position = [&](int64_t k) {
      const Keypoint& keypoint = pose.keypoints[static_cast<size_t>(k)];
      return image::Position{keypoint.x, keypoint.y};
    };
    for (const auto& [from, to] : skeleton.limbs) {
      if (!is_seen(from) || !is_seen(to)) continue;
      const image::PixelColor &first = colors[static_cast<size_t>(from)], &second = colors[static_cast<size_t>(to)];
      image::draw_line(position(from), position(to), radius, first == second ? first : kMiddle, image);
    }
    for (int64_t k = 0; k < std::ssize(pose.keypoints); ++k) {
      if (is_seen(k)) image::draw_line(position(k), position(k), 2 * radius, colors[static_cast<size_t>(k)], image);
    }
  }
  return image;
}

}  // namespace vitrail::tasks
