// SPDX-License-Identifier: Apache-2.0
#include "inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/digest.h"

namespace crosstie::fuzz {
namespace {

namespace fs = std::filesystem;

// Targets that cost much an input (sockets, processes) get fewer, so that each takes a second or
// two. `also` are inputs that lie elsewhere, by what their paths end in.
struct Row {
  std::string_view target;
  int runs;
  std::string_view also;
};
constexpr Row kRows[] = {
    {"cluster_toml", 500, "tests/golden/*.toml"},
    {"hwloc_xml", 10000, "tests/golden/*.xml"},
    {"json", 2000, "tests/golden/*.json"},
    {"nccl_xml", 20000, "tests/golden/*.xml"},
    {"machine_toml", 10000,
     "tests/golden/*.toml data/machines/*.toml tests/fuzz/corpus/machine_toml/*"},
    {"synthetic", 200, ""},
    {"options", 20000, ""},
    {"facts", 10000, ""},
    {"tcp_stream", 5000, ""},
    {"tcp_handshake", 5000, ""},
    {"shm_peer", 2000, ""},
    {"channel", 5000, ""},
    {"rendezvous", 300, ""},
    {"logs", 10000, "tests/golden/*.log tests/golden/*.jsonl"},
};

fs::path source_folder() {
  const char* const folder = std::getenv("srcdir");
  return folder ? folder : ".";
}

// "FOLDER/*.SUFFIX"
void add_files(const fs::path& pattern, std::vector<fs::path>& files) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(source_folder() / pattern.parent_path(), none))
    if (pattern.filename() == "*" || entry.path().extension() == pattern.extension())
      files.push_back(entry.path());
}

// The quoted part of a line, with \\, \" and \xNN.
std::string unquoted(const std::string& line) {
  const size_t first = line.find('"'), last = line.rfind('"');
  std::string word;
  for (size_t i = first + 1; i < last; i++) {
    if (line[i] != '\\') {
      word += line[i];
    } else if (line[i + 1] == 'x') {
      word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      word += line[++i];
    }
  }
  return word;
}

std::vector<std::string> dictionary(const std::string& target) {
  std::vector<std::string> words;
  std::ifstream file(source_folder() / "tests/fuzz" / (target + ".dict"));
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') words.push_back(unquoted(line));
  return words;
}

}  // namespace

std::string read_input(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMostInput, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

Inputs inputs_of(const std::string& target) {
  Inputs inputs;
  const auto row = std::ranges::find(kRows, std::string_view(target), &Row::target);
  if (row == std::end(kRows)) return inputs;
  inputs.runs = row->runs;
  inputs.dictionary = dictionary(target);
  std::vector<fs::path> files;
  add_files(fs::path("tests/fuzz/corpus") / target / "*", files);
  for (std::string_view rest = row->also; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    add_files(rest.substr(0, end), files);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) inputs.corpus.push_back(read_input(file.native()));
  return inputs;
}

std::string keep_input(const std::string& target, std::string_view input) {
  const std::string name = fmt::format("{}-{:016x}.input", target, Digest().add(input).value());
  std::ofstream(name, std::ios::binary)
      .write(input.data(), static_cast<std::streamsize>(input.size()));
  return fs::absolute(name).native();
}

}  // namespace crosstie::fuzz
