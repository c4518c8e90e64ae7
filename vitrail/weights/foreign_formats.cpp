// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/foreign_formats_internal.h"

#include <algorithm>
#include <array>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"

namespace vitrail::weights {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kUseOriginal = "; use the PyTorch or safetensors checkpoint that it was made from";
constexpr std::string_view kSaveArrays = "; save the arrays by name as an .npz file (numpy.savez) or as safetensors";
constexpr std::string_view kNoModel = ", not a model";

// The bytes at `offset`, or the end of the name.
struct Format {
  std::string_view what, advice;
  std::vector<std::string_view> magics, endings;
  size_t offset = 0;
};

const Format kMsgpack{"a msgpack file of Flax", kSaveArrays, {}, {".msgpack"}},
    kOnnx{"an ONNX graph", kUseOriginal, {}, {".onnx"}};

const Format kFormats[] = {
    kMsgpack,
    kOnnx,
    {"a GGUF or ggml file", kUseOriginal, {"GGUF", "lmgg", "fmgg", "tjgg"}, {".gguf", ".ggml"}},
    {"an HDF5 file of Keras or TensorFlow", kSaveArrays, {"\x89HDF\r\n"}, {".h5", ".hdf5", ".keras"}},
    {"a TensorFlow Lite model", kUseOriginal, {"TFL3"}, {".tflite"}, 4},
    {"a TensorFlow checkpoint or graph", kSaveArrays, {}, {".pb", ".index", ".meta", ".data-00000-of-00001"}},
    {"a compiled TensorRT, OpenVINO or Core ML model",
     kUseOriginal,
     {},
     {".engine", ".plan", ".mlmodel", ".mlpackage"}},
    {"a single NumPy array", kSaveArrays, {"\x93NUMPY"}, {}},
    {"a compressed file",
     "; unpack it first",
     {"\x1f\x8b", "\x28\xb5\x2f\xfd", "\xfd\x37zXZ", "BZh", "7z\xbc\xaf"},
     {}},
    {"a tar archive", "; unpack it first", {"ustar"}, {}, 257},
    {"an index of vectors", kNoModel, {"IxFI", "IxSQ"}, {}},
    {"an image", kNoModel, {"\x89PNG", "\xff\xd8\xff"}, {}},
    {"a part of a checkpoint of torch.distributed",
     "; join the folder: torch.distributed.checkpoint.format_utils.dcp_to_torch_save(folder, \"weights.pth\")",
     {},
     {".distcp"}},
    {"a program of torch.export",
     "; save its weights instead: torch.save(model.state_dict(), \"weights.pth\")",
     {},
     {".pt2"}},
};

const Format* format_by_magic(std::string_view bytes) {
  const auto fits = [&](const Format& format) {
    return std::ranges::any_of(format.magics, [&](std::string_view magic) {
      return bytes.size() > format.offset && bytes.substr(format.offset).starts_with(magic);
    });
  };
  const auto format = std::ranges::find_if(kFormats, fits);
  return format == std::end(kFormats) ? nullptr : format;
}

const Format* format_by_name(const std::string& name) {
  const auto fits = [low = lower_case(name)](const Format& format) {
    return std::ranges::any_of(format.endings, [&](std::string_view ending) { return low.ends_with(ending); });
  };
  const auto format = std::ranges::find_if(kFormats, fits);
  return format == std::end(kFormats) ? nullptr : format;
}

// Flax writes a map whose first key is "params" or a parameter's name; ONNX begins with its version and producer.
const Format* format_by_structure(std::string_view bytes) {
  if (bytes.size() < 8) return nullptr;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const bool fixmap = byte(0) >= 0x81 && byte(0) <= 0x8f && byte(1) >= 0xa1 && byte(1) <= 0xbf;
  const bool map16 = byte(0) == 0xde && byte(3) >= 0xa1 && byte(3) <= 0xbf;
  if (fixmap || map16) return &kMsgpack;
  const bool onnx = byte(0) == 0x08 && byte(1) <= 0x20 && (byte(2) == 0x12 || byte(2) == 0x3a || byte(2) == 0x42);
  return onnx ? &kOnnx : nullptr;
}

std::string text_of(const Format& format) { return str(format.what, format.advice); }

}  // namespace

std::string foreign_file(std::string_view bytes, const std::string& name) {
  if (const Format* format = format_by_magic(bytes)) return text_of(*format);
  if (const Format* format = format_by_name(name)) return text_of(*format);
  const std::string begin = lower_case(std::string(bytes.substr(0, 256)));
  const size_t first = begin.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const std::string_view start = first == std::string::npos ? "" : std::string_view(begin).substr(first);
  if (start.starts_with("<!doctype") || start.starts_with("<html") || start.starts_with("<?xml")) {
    return "an HTML or XML page, not the weights: the download failed or is of a web page";
  }
  if (start.starts_with("{") || start.starts_with("[")) {
    return "a JSON text; give the weights, or the folder with config.json and the weights";
  }
  const Format* format = format_by_structure(bytes);
  return format == nullptr ? "" : text_of(*format);
}

std::string folder_content(const fs::path& folder) {
  constexpr std::array<std::string_view, 7> kWeights{".safetensors", ".pth", ".pt", ".bin", ".npz", ".ckpt", ".tar"};
  std::vector<std::string> weights, foreign;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::string extension = lower_case(entry->path().extension().string());
    if (std::ranges::find(kWeights, extension) != kWeights.end()) weights.push_back(name);
    if (const Format* format = format_by_name(name)) foreign.push_back(str(name, ", ", text_of(*format)));
  }
  if (error) return "a folder that cannot be read: " + error.message();
  std::sort(weights.begin(), weights.end());
  std::sort(foreign.begin(), foreign.end());
  if (!weights.empty()) return str("other names; give the file itself: ", (folder / weights.front()).string());
  return foreign.empty() ? "none of them" : foreign.front();
}

}  // namespace vitrail::weights
