// SPDX-License-Identifier: Apache-2.0
// Objects of a camera's frames keep their identities: a detector finds their boxes, and a tracker follows them.
//   example_camera DETECTOR
#include <iostream>

#include "vitrail/analysis/byte_tracker.h"
#include "vitrail/tasks/loaded_model.h"
#include "vitrail/tasks/run.h"
#include "vitrail/vitrail.h"

// What stands for a camera: frames of 64 × 48 pixels, on which a bright square moves.  In a program
// of your own, read() dequeues a buffer of the driver, or is that of cv::VideoCapture.
class Camera {
 public:
  // False at the end.  The pixels are those of the last frame until the next call.
  bool read(vitrail::image::Image& frame) {
    constexpr int64_t kFrames = 5, kWidth = 64, kHeight = 48;
    if (count_ == kFrames) return false;
    frame = vitrail::image::make_image(kWidth, kHeight, 3);
    for (int64_t y = 0; y < kHeight; ++y) {
      for (int64_t x = 0; x < kWidth; ++x) {
        const bool square = y >= 12 && y < 36 && x >= 8 + 2 * count_ && x < 32 + 2 * count_;
        for (int64_t c = 0; c < 3; ++c) frame.row(y)[3 * x + c] = square ? 230 : static_cast<uint8_t>(40 + x + y);
      }
    }
    ++count_;
    return true;
  }

 private:
  int64_t count_ = 0;
};

int main(int argc, char** argv) try {
  if (argc != 2) throw vitrail::Error("usage: example_camera DETECTOR");
  namespace tasks = vitrail::tasks;
  const auto model = tasks::open_model(vitrail::models::ModelFiles(argv[1]));
  const tasks::Task* const task = tasks::find_task("detect", *model);
  if (task == nullptr) throw vitrail::Error(argv[1], tasks::models_for_task("detect"), model->family());
  tasks::RequestOptions options;
  options.add("threshold", "0.5");
  const auto request = task->request(*model, options, {.model = argv[1], .track = true});
  vitrail::analysis::ByteTracker tracker(request->tracking());

  Camera camera;
  vitrail::image::Image frame;
  for (int64_t number = 0; camera.read(frame); ++number) {
    std::vector<tasks::Item> items{{.name = vitrail::str("frame ", number), .photo = std::move(frame)}};
    tasks::run(*model, *request, items);
    request->track(items.front(), tracker, 1);  // more than 1 if frames in front of it were left out
    std::cout << request->json(items.front()) << std::endl;
  }
} catch (const std::exception& error) {
  std::cerr << "camera: " << error.what() << '\n';
  return 1;
}
