// SPDX-License-Identifier: Apache-2.0
// Reads the stream of pickles that torch.save wrote before PyTorch 1.6.
#include <unordered_map>

#include "vitrail/base/error.h"
#include "vitrail/weights/pytorch/state_dict_internal.h"
#include "vitrail/weights/pytorch/torch_file_internal.h"

namespace vitrail::weights {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";  // 0x1950a86a20f9469cfc6c
constexpr int64_t kProtocol = 1001;

struct StorageRange {
  uint64_t begin = 0, size = 0;
};

class TorchLegacyFile : public TensorFile {
 public:
  TorchLegacyFile(const FileBytes& bytes, size_t choice) : bytes_(bytes) {
    format_ = "pytorch legacy";
    check_preamble();
    const Pickle objects = next();
    const Pickle keys = next();
    find_storages(keys.root(), objects);
    StateDict found = find_tensors(
        objects.root(), bytes_.where, [this](const PickledTensor& tensor) { return read(tensor, bytes_.where); },
        choice);
    objects_ = std::move(found.objects);
    state_dicts_ = std::move(found.choices);
    for (auto& [name, tensor] : found.tensors) {
      tensors_.push_back(describe(name, *tensor));
      pickled_.push_back(std::move(tensor));
    }
  }

  Tensor tensor(size_t index) const override {
    return read(*pickled_[index], str(bytes_.where, ": ", tensors_[index].name));
  }

 private:
  Tensor read(const PickledTensor& tensor, const std::string& where) const {
    FileBytes bytes = bytes_;
    bytes.where = where;
    const auto storage = storages_.find(tensor.storage.key);
    if (storage == storages_.end()) throw Error(bytes.where, "its storage in the file", "none");
    return make_tensor(bytes, storage->second.begin, storage->second.size, tensor);
  }

  Pickle next() {
    Pickle pickle(bytes_.data.subspan(at_), bytes_.where);
    at_ += pickle.size();
    return pickle;
  }

  void check_preamble() {
    const Pickle magic = next();
    if (magic.root().kind != Kind::big_integer || magic.root().text != kMagic) {
      throw Error(bytes_.where, "a file of torch.save", "another pickle");
    }
    const Pickle protocol = next();
    if (protocol.root().kind != Kind::integer || protocol.root().integer != kProtocol) {
      throw Error(bytes_.where, str("torch.save's protocol ", kProtocol), "another");
    }
    const Pickle system = next();
    const PickleValue* little = system.root().find("little_endian");
    if (little == nullptr || little->kind != Kind::boolean || little->integer == 0) {
      throw Error(bytes_.where, "little-endian data", "another byte order");
    }
  }

  // Locates the storages.  Each is an element count of 8 bytes and the elements, whose size follows from the objects.
  void find_storages(const PickleValue& keys, const Pickle& objects) {
    std::unordered_map<std::string_view, uint64_t> element_bytes;
    for (const PickledStorage& storage : objects.storages()) {
      const auto [known, fresh] = element_bytes.emplace(storage.key, storage.type.bytes);
      if (!fresh && known->second != storage.type.bytes) {
        throw Error(bytes_.where, "one element type for a storage", "two for \"" + storage.key + "\"");
      }
    }
    if (keys.kind != Kind::list) throw Error(bytes_.where, "a list of storage keys", name_of(keys.kind));
    const auto data = bytes_.data;
    for (const PickleValue* key : keys.items) {
      if (key->kind != Kind::string) throw Error(bytes_.where, "a storage's key as a string", name_of(key->kind));
      const auto known = element_bytes.find(key->text);
      if (known == element_bytes.end()) throw Error(bytes_.where, "keys of known storages", "another");
      if (data.size() - at_ < 8) throw Error(bytes_.where, "another storage", "the end of the file: it is truncated");
      uint64_t count = 0;
      for (int i = 7; i >= 0; --i) count = count << 8 | static_cast<uint64_t>(data[at_ + i]);
      at_ += 8;
      if (count > (data.size() - at_) / known->second) {
        throw Error(bytes_.where, str(count, " elements in a storage"),
                    str("the end of the file after ", data.size() - at_, " bytes: it is truncated"));
      }
      storages_[std::string(key->text)] = {at_, count * known->second};
      at_ += count * known->second;
    }
  }

  FileBytes bytes_;
  size_t at_ = 0;
  std::vector<std::shared_ptr<const PickledTensor>> pickled_;
  std::unordered_map<std::string, StorageRange> storages_;
};

}  // namespace

std::unique_ptr<TensorFile> open_torch_legacy(const FileBytes& bytes, size_t choice) {
  return std::make_unique<TorchLegacyFile>(bytes, choice);
}

bool is_torch_legacy(std::string_view bytes) {
  return bytes.size() > 4 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

}  // namespace vitrail::weights
