// SPDX-License-Identifier: Apache-2.0
// A frame of OpenCV is classified without a copy: ImageView reads the pixels where OpenCV has them.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

#include "vitrail/vitrail.h"

// The members of OpenCV's class that view_of() uses, so that this is compiled without OpenCV.  In a program of your
// own, #include <opencv2/core.hpp> instead.
namespace cv {
struct Mat {
  int rows = 0, cols = 0;
  uint8_t* data = nullptr;
  size_t step = 0;  // bytes from one row to the next
  int channels() const { return 3; }
};
}  // namespace cv

// OpenCV's order is blue, green, red.  The frame must outlive the view.
vitrail::image::ImageView view_of(const cv::Mat& frame) {
  using vitrail::image::PixelFormat;
  const PixelFormat format = frame.channels() == 1   ? PixelFormat::grey
                             : frame.channels() == 4 ? PixelFormat::bgra
                                                     : PixelFormat::bgr;
  return {frame.data, frame.cols, frame.rows, format, static_cast<int64_t>(frame.step)};
}

int main() try {
  // A frame of 64 × 48 pixels, whose rows are padded to 256 bytes as those of some cameras.
  std::vector<uint8_t> memory(48 * 256, 90);
  cv::Mat frame;
  frame.rows = 48;
  frame.cols = 64;
  frame.data = memory.data();
  frame.step = 256;

  const vitrail::Model model("imagenet-tiny");
  for (const vitrail::Prediction& prediction : model.classify(view_of(frame), 2)) {
    std::cout << prediction.label << ' ' << prediction.probability << '\n';
  }
} catch (const std::exception& error) {
  std::cerr << "opencv_frame: " << error.what() << '\n';
  return 1;
}
