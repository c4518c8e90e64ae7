// SPDX-License-Identifier: Apache-2.0
// Encodes JPEG with libjpeg-turbo.  It reports errors by longjmp, as jpeg.cpp says.
#include <cstdio>
// libjpeg's header needs FILE and size_t declared before it.
#include <jpeglib.h>

#include <csetjmp>
#include <cstdlib>

#include "vitrail/base/error.h"
#include "vitrail/image/encode.h"

namespace vitrail::image {
namespace {

struct JpegWriter {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX] = "";
  unsigned char* bytes = nullptr;  // allocated by libjpeg with malloc
  unsigned long size = 0;

  ~JpegWriter() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }
};

[[noreturn]] void on_jpeg_write_error(j_common_ptr info) {
  JpegWriter& writer = *static_cast<JpegWriter*>(info->client_data);
  info->err->format_message(info, writer.message);
  std::longjmp(writer.failed, 1);
}

bool write_jpeg(JpegWriter& writer, const Image& image, int quality) {
  writer.info.err = jpeg_std_error(&writer.errors);
  writer.errors.error_exit = on_jpeg_write_error;
  writer.info.client_data = &writer;
  if (setjmp(writer.failed) != 0) return false;
  jpeg_create_compress(&writer.info);
  jpeg_mem_dest(&writer.info, &writer.bytes, &writer.size);
  writer.info.image_width = static_cast<JDIMENSION>(image.width);
  writer.info.image_height = static_cast<JDIMENSION>(image.height);
  writer.info.input_components = static_cast<int>(image.channels);
  writer.info.in_color_space = image.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&writer.info);
  jpeg_set_quality(&writer.info, quality, TRUE);
  jpeg_start_compress(&writer.info, TRUE);
  while (writer.info.next_scanline < writer.info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(image.row(writer.info.next_scanline));
    jpeg_write_scanlines(&writer.info, &row, 1);
  }
  jpeg_finish_compress(&writer.info);
  return true;
}

}  // namespace

std::vector<uint8_t> encode_jpeg(const Image& image, int quality) {
  check_image(image, "encode_jpeg");
  if (quality < 1 || quality > 100) throw Error("encode_jpeg", "a quality from 1 to 100", str(quality));
  JpegWriter writer;
  if (!write_jpeg(writer, image, quality)) throw Error(std::string("encode_jpeg: ") + writer.message);
  return {writer.bytes, writer.bytes + writer.size};
}

}  // namespace vitrail::image
