// SPDX-License-Identifier: Apache-2.0
// Reads event files by the format's description: record_writer.h, crc32c.h and event.proto of TensorFlow.
#include "vitrail/train/run/event_file_internal.h"

#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "tests/train/metrics_comparison.h"
#include "vitrail/train/run/metrics_log_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

// CRC-32C bit by bit: the reflected polynomial 0x82F63B78.
uint32_t crc_of(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

template <class T>
T little_endian(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

uint32_t masked_crc(const std::string& bytes) {
  const uint32_t crc = crc_of(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

// The records of a file.  Fails the test for a wrong length or checksum.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    if (at + 12 > file.size()) {
      ADD_FAILURE() << "an incomplete record at byte " << at;
      break;
    }
    const auto length = little_endian<uint64_t>(file, at);
    EXPECT_EQ(little_endian<uint32_t>(file, at + 8), masked_crc(file.substr(at, 8))) << "of the length at byte " << at;
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(little_endian<uint32_t>(file, at + 12 + length), masked_crc(records.back())) << "of record " << at;
    at += 16 + length;
  }
  return records;
}

uint64_t varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.at(at++));
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

// The fields of a protocol buffer by number; values of fixed size as their bytes.
std::map<uint64_t, std::string> fields_of(const std::string& message) {
  std::map<uint64_t, std::string> fields;
  for (size_t at = 0; at < message.size();) {
    const uint64_t key = varint(message, at), type = key & 7;
    if (type == 0) {
      fields[key >> 3] = std::to_string(varint(message, at));
      continue;
    }
    const size_t size = type == 1 ? 8 : type == 5 ? 4 : varint(message, at);
    fields[key >> 3] = message.substr(at, size);
    at += size;
  }
  return fields;
}

TEST(EventFile, ChecksumIsThatOfTheStandard) { EXPECT_EQ(crc_of("123456789"), 0xE3069283u); }

TEST(EventFile, HasItsScalarsInRecordsWithChecksums) {
  const fs::path path = testing::scratch_folder() / "events";
  EventFile file(path, 0);
  file.add_scalar("train/loss", 300, 0.25, 1234.5);
  EXPECT_EQ(file.flush(), fs::file_size(path));
  const std::vector<std::string> records = records_of(read_text(path));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(fields_of(records[0]).at(3), "brain.Event:2");
  auto event = fields_of(records[1]);
  EXPECT_EQ(little_endian<double>(event.at(1), 0), 1234.5);
  EXPECT_EQ(event.at(2), "300");
  auto value = fields_of(fields_of(event.at(5)).at(1));
  EXPECT_EQ(value.at(1), "train/loss");
  EXPECT_EQ(little_endian<float>(value.at(2), 0), 0.25f);
}

// The limits of 7 and 14 bits, up to which a varint has one and two bytes.
TEST(EventFile, StepsAndLengthsOfAnyNumberOfBytesAreKept) {
  const fs::path path = testing::scratch_folder() / "events";
  const std::vector<int64_t> numbers{0, 1, 127, 128, 129, 16383, 16384, INT64_MAX};
  EventFile file(path, 0);
  for (const int64_t number : numbers)
    file.add_scalar(std::string(static_cast<size_t>(number % 20000), 't'), number, -1.5, 2.5);
  EXPECT_EQ(file.flush(), fs::file_size(path));
  const std::vector<std::string> records = records_of(read_text(path));
  ASSERT_EQ(records.size(), numbers.size() + 1);
  for (size_t i = 0; i < numbers.size(); ++i) {
    auto event = fields_of(records[i + 1]);
    EXPECT_EQ(event.at(2), std::to_string(numbers[i]));
    auto value = fields_of(fields_of(event.at(5)).at(1));
    EXPECT_EQ(value.at(1).size(), static_cast<size_t>(numbers[i] % 20000));
    EXPECT_EQ(little_endian<float>(value.at(2), 0), -1.5f);
  }
}

TEST(EventFile, OfARunHasTheValuesOfItsMetrics) {
  const fs::path run = testing::scratch_folder() / "run";
  train(parse_recipe(tiny_recipe(make_images()), "r.json"), {.folder = run, .threads = 1});
  std::map<std::string, std::vector<float>> scalars;
  for (const auto& entry : fs::directory_iterator(run / "tensorboard")) {
    for (const std::string& record : records_of(read_text(entry.path()))) {
      auto event = fields_of(record);
      if (!event.contains(5)) continue;
      auto value = fields_of(fields_of(event.at(5)).at(1));
      scalars[value.at(1)].push_back(little_endian<float>(value.at(2), 0));
    }
  }
  const auto expect = [&](const char* tag, Column column) {
    const std::vector<double> values = train_column(run, column);
    ASSERT_EQ(scalars[tag].size(), values.size()) << tag;
    for (size_t i = 0; i < values.size(); ++i) EXPECT_FLOAT_EQ(scalars[tag][i], static_cast<float>(values[i])) << tag;
  };
  expect("train/loss", Column::loss);
  expect("train/learning_rate", Column::rate);
  expect("train/gradient_norm", Column::gradient_norm);
  EXPECT_EQ(scalars["val/top1"].size(), 3u);
  EXPECT_EQ(scalars["val_ema/top1"].size(), 3u);
}

// Each value of a row is a scalar of its own, beside the event's name; none of what the row does not have.
TEST(MetricsLog, WritesTheScalarsOfItsRows) {
  const fs::path folder = testing::scratch_folder();
  Counters counters;
  MetricsLog log(folder, counters, classification_metrics(true).each);
  log.add({.event = "train",
           .step = 7,
           .epoch = 0.5,
           .loss = 1.5,
           .scores = {0.25, 0.75},
           .learning_rate = 0.125,
           .gradient_norm = 3,
           .images_per_second = 40,
           .data_wait = 0.0625,
           .seconds = 9});
  log.add({.event = "val", .step = 8, .loss = 2.5, .scores = {0.5}});
  log.flush(counters);
  std::vector<std::tuple<std::string, std::string, float>> scalars;
  for (const std::string& record : records_of(read_text(folder / "tensorboard" / counters.event_name))) {
    auto event = fields_of(record);
    if (!event.contains(5)) continue;
    EXPECT_GT(little_endian<double>(event.at(1), 0), 1.6e9) << "seconds since 1970";
    auto value = fields_of(fields_of(event.at(5)).at(1));
    scalars.emplace_back(event.at(2), value.at(1), little_endian<float>(value.at(2), 0));
  }
  const std::vector<std::tuple<std::string, std::string, float>> expected{{"7", "train/loss", 1.5F},
                                                                          {"7", "train/map", 0.25F},
                                                                          {"7", "train/f1", 0.75F},
                                                                          {"7", "train/learning_rate", 0.125F},
                                                                          {"7", "train/gradient_norm", 3.0F},
                                                                          {"7", "train/images_per_second", 40.0F},
                                                                          {"7", "train/data_wait", 0.0625F},
                                                                          {"8", "val/loss", 2.5F},
                                                                          {"8", "val/map", 0.5F}};
  EXPECT_EQ(scalars, expected);
}

TEST(EventFile, BeginsWithItsVersion) {
  const fs::path path = testing::scratch_folder() / "events";
  EventFile(path, 0).flush();
  const std::vector<std::string> records = records_of(read_text(path));
  ASSERT_EQ(records.size(), 1u);
  auto event = fields_of(records[0]);
  EXPECT_EQ(event.size(), 3u);
  EXPECT_EQ(little_endian<double>(event.at(1), 0), 0);
  EXPECT_EQ(event.at(2), "0");
  EXPECT_EQ(event.at(3), "brain.Event:2");
}

}  // namespace
}  // namespace vitrail::train
