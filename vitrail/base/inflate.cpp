#include "vitrail/base/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail {
namespace {

constexpr uint64_t kMaxStep = uint64_t{1} << 30;  // zlib counts in 32 bits

struct Inflater {
  z_stream stream{};
  explicit Inflater(const std::string& where) {
    constexpr int kRaw = -15;
    if (::inflateInit2(&stream, kRaw) != Z_OK) throw Error(where + ": zlib cannot be started");
  }
  ~Inflater() { ::inflateEnd(&stream); }
};

}  // namespace

std::vector<std::byte> inflate_exactly(std::span<const std::byte> compressed, uint64_t size, const std::string& where) {
  if (size / kMaxDeflateRatio > compressed.size()) {
    throw Error(where, str("a size that ", compressed.size(), " deflated bytes can have"), str(size));
  }
  std::vector<std::byte> content(size);
  std::byte past_end{};  // room for one byte too many, so that overlong data shows itself
  Inflater inflater(where);
  z_stream& stream = inflater.stream;
  uint64_t taken = 0, given = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const uint64_t in = std::min(kMaxStep, compressed.size() - taken), out = std::min(kMaxStep, size - given);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(compressed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out > 0 ? content.data() + given : &past_end);
    stream.avail_out = static_cast<uInt>(out > 0 ? out : 1);
    status = ::inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    if (out > 0) {
      given += out - stream.avail_out;
    } else if (stream.avail_out == 0) {
      throw Error(where, str(size, " bytes"), "deflated data that gives more");
    }
  }
  if (status != Z_STREAM_END || given != size) {
    throw Error(where, str(size, " bytes of deflated data"), str("damaged data after ", given));
  }
  return content;
}

}  // namespace vitrail
