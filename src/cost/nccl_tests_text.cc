// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "base/numbers.h"
#include "base/printable.h"
#include "base/text.h"
#include "cost/nccl/log_lines.h"
#include "cost/nccl/pair.h"
#include "cost/nccl_tests.h"

namespace crosstie {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  while (true) {
    line = trim(line);
    if (line.empty()) return words;
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

// The number after a word: "nGpus 8".
std::optional<uint32_t> after(const Words& words, std::string_view word) {
  const auto at = std::ranges::find(words, word);
  if (at == words.end() || at + 1 == words.end()) return std::nullopt;
  return number_of<uint32_t>(*(at + 1));
}

// A launcher's mark of who printed the line: Open MPI's "[1,0]<stdout>:", srun's "0: " (--label),
// Hydra's "[0] ".
struct Marked {
  std::string_view mark, line;
};
Marked split_mark(std::string_view line) {
  constexpr size_t kMost = 256;
  for (const std::string_view stream : {"<stdout>:", "<stderr>:"})
    if (const size_t at = line.substr(0, kMost).find(stream); at != line.npos)
      return {line.substr(0, at + stream.size()), line.substr(at + stream.size())};
  std::string_view rest = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  const bool hydra = rest.starts_with('[');
  if (hydra) rest.remove_prefix(1);
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  rest.remove_prefix(digits);
  if (digits == 0 || !rest.starts_with(hydra ? "] " : ": ")) return {"", line};
  return {line.substr(0, line.size() - rest.size()), rest.substr(2)};
}

// Without a terminal's colours: "\x1b[32m".
std::string plain(std::string_view line) {
  std::string text;
  for (size_t at; (at = line.find("\x1b[")) != line.npos;) {
    text += line.substr(0, at);
    const size_t end = line.find_first_not_of("0123456789;", at + 2);
    line.remove_prefix(std::min(end, line.size() - 1) + 1);
  }
  return text += line;
}

// Without so many words and the blank after them.
std::string_view without_words(std::string_view line, size_t words) {
  for (; words > 0; words--) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    line.remove_prefix(std::min(line.find(' '), line.size()));
  }
  return line;
}

constexpr std::pair<std::string_view, uint32_t> kTypes[] = {
    {"int8", 1}, {"uint8", 1}, {"int32", 4},  {"uint32", 4},   {"int64", 8},  {"uint64", 8},
    {"half", 2}, {"float", 4}, {"double", 8}, {"bfloat16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1},
};

// A row by the names of its columns.
struct Row {
  uint64_t bytes = 0, count = 0;
  std::string type, operation;
  bool has_root = false;
  double algorithm_rate = 0, bus_rate = 0;
  std::vector<Outcome> outcomes;
};

class TextReader {
 public:
  TextReader(const std::string& file, const ToldOfLog& told) : file_(file), told_(told) {}

  Result<std::vector<MeasuredRun>> read(std::string_view text) {
    for (line_ = 1; !text.empty() && status_; line_++) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      if (line.find('\x1b') == line.npos)
        read_line(line);
      else
        read_line(plain(line));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    // What the program had begun when it ended is no row yet.
    if (status_) finish();
    if (!status_) return pass(status_);
    return std::move(runs_);
  }

 private:
  void mistake(size_t line, std::string_view what) {
    if (status_) status_ = fail(Code::invalid, "line {}: {}", line, what);
  }

  // Lines of one process, of which NCCL's break rows in two.
  struct Begun {
    std::string text;
    size_t line = 0;
  };

  void read_line(std::string_view raw) {
    learn_prefix(raw);
    const auto [mark, line] = split_mark(without_prefix(raw));
    Begun& begun = begun_[std::string(mark)];
    const auto message = find_nccl_log_line(line, hosts_);
    if (message) heed(message->text);
    const std::string_view own = message ? line.substr(0, message->begin) : line;
    if (trim(own).empty()) return;
    if (begun.text.empty()) begun.line = line_;
    // A row goes on after blanks; all else is another's, or another line.
    if (!begun.text.empty() && own[0] != ' ') {
      if (own[0] == '#') end_line(begun);
      return message ? void() : read_whole(own, line_);
    }
    begun.text += own;
    if (!message && !goes_on(begun)) end_line(begun);
  }

  // What puts a log together may begin each line with words: a time, a pod's name. A program's
  // first lines show how many these are.
  void learn_prefix(std::string_view raw) {
    for (const std::string_view begin : {"# nccl-tests version", "# nThread"}) {
      const std::string_view before = raw.substr(0, raw.find(begin));
      if (before.size() == raw.size()) continue;
      const bool known = before.empty() || split_mark(raw).mark.size() > 0;
      prefix_words_ = known ? 0 : words_of(before).size();
    }
  }
  std::string_view without_prefix(std::string_view raw) const {
    if (prefix_words_ == 0) return raw;
    const std::string_view line = without_words(raw, prefix_words_);
    return line.substr(std::min<size_t>(1, line.size()));
  }

  // Half a row: a warning of NCCL's begins with a line's end.
  bool goes_on(const Begun& begun) const {
    const Words words = words_of(begun.text);
    return is_row(words) && words.size() < columns_.size();
  }
  bool is_row(const Words& words) const {
    return !columns_.empty() && words.size() > 1 && number_of<double>(words[0]) &&
           number_of<double>(words[1]);
  }

  void end_line(Begun& begun) {
    const Begun whole = std::exchange(begun, {});
    if (!whole.text.empty()) read_whole(whole.text, whole.line);
  }

  void read_whole(std::string_view text, size_t line) {
    const std::string_view own = trim(text);
    if (own.starts_with('#')) return read_comment(own, line);
    if (const Words words = words_of(text); is_row(words)) return read_row(words, line);
    if (const auto version = version_told(text)) now().version = version;
    read_mention(words_of(text));
  }

  // Of a program with its options, by somebody. A shell's line may go on with another command.
  void read_mention(const Words& words) {
    const auto is_program = [](std::string_view word) {
      return collective_of_program(word).has_value();
    };
    const auto ends = [&](std::string_view word) {
      return word.find_first_of("&|;<>") != word.npos || is_program(word);
    };
    const auto program = std::ranges::find_if(words, is_program);
    if (program == words.end()) return;
    mentioned_.assign(program, std::find_if(program + 1, words.end(), ends));
  }

  // Comments.

  void read_comment(std::string_view text, size_t line) {
    const Words words = words_of(text.substr(1));
    if (words.empty()) return;
    if (text.starts_with("# nccl-tests version")) begin(line), read_release(words);
    if (text.starts_with("# Collective test starting:"))
      begin_unless_fresh(line), name(words.back());
    if (words[0] == "nThread") begin_unless_fresh(line), read_configuration(words);
    if (words[0] == "Rank") read_rank(words, line);
    if (words.size() > 2 && words[0] == "size" && words[1] == "count") read_columns(words);
    if (text.starts_with("# Blocking Enabled")) heed_option(now(), 'z', 1);
    if (text.starts_with("# Out of bounds values")) read_end(words);
    if (text.starts_with("# Avg bus bandwidth")) end_table(true);
  }

  MeasuredRun& now() { return runs_.empty() ? early_ : runs_.back(); }

  void begin(size_t line) {
    finish();
    MeasuredRun& run = runs_.emplace_back(std::exchange(early_, {}));
    run.file = file_, run.line = line;
    heed_command(run, std::exchange(mentioned_, {}));
    if (const Status told = tell(run, told_); !told && status_) status_ = told;
    fresh_ = true;
  }
  void begin_unless_fresh(size_t line) {
    if (runs_.empty() || !fresh_) begin(line);
  }
  void name(std::string_view program) { now().program = program; }

  void read_release(const Words& words) {
    constexpr std::string_view kLibrary = "nccl-library=";
    for (const std::string_view word : words)
      if (word.starts_with(kLibrary))
        if (const auto code = number_of<uint64_t>(word.substr(kLibrary.size())))
          now().version = nccl_version_of_code(*code);
  }

  void read_configuration(const Words& words) {
    constexpr uint32_t kMost = 1 << 16;
    fresh_ = false;
    const auto threads = after(words, "nThread"), gpus = after(words, "nGpus");
    if (threads && gpus && *threads < kMost && *gpus < kMost) gpus_of_process_ = *threads * *gpus;
    const auto aggregated = std::ranges::find(words, "agg");  // "agg iters: 1"
    const Words rest(aggregated, words.end());
    heed_option(now(), 'm', after(rest, "iters:").value_or(1));
    heed_option(now(), 'G', after(words, "graph:").value_or(0));
  }

  void read_rank(const Words& words, size_t line) {
    const auto on = std::ranges::find(words, "on"), at = std::ranges::find(words, "device");
    const auto rank = after(words, "Rank");
    if (runs_.empty() || !rank || on == words.end() || on + 1 == words.end()) return;
    const std::string host(*(on + 1));
    hosts_.insert(host.substr(0, host.find('.')));
    most_rank_ = std::max(most_rank_, *rank);
    // Its number there, and where it is: "3 [0000:19:00]".
    const bool tells = words.end() - at > 2;
    const std::string device = tells ? fmt::format("{} {}", *(at + 1), *(at + 2)) : "";
    if (!devices_.add(*rank, after(words, "Group").value_or(0), host, device))
      mistake(line,
              fmt::format("rank {} is told twice: were programs that were built without MPI=1 "
                          "started together? Each of them is a job of its own",
                          *rank));
  }

  void read_columns(const Words& words) {
    columns_.clear();
    for (const std::string_view word : words) {
      columns_.emplace_back(word);
      if (word == "timestamp") columns_.emplace_back(word);  // of two words
    }
    if (!runs_.empty()) heed_option(now(), 'C', std::ranges::count(words, "cputime"));
  }

  void read_end(const Words& words) {
    const auto colon = std::ranges::find(words, ":");
    if (!runs_.empty() && colon != words.end() && colon + 1 != words.end())
      now().out_of_bounds = number_of<uint64_t>(*(colon + 1)).value_or(1);
    end_table(false);
  }
  void end_table(bool ended) {
    columns_.clear();
    if (!runs_.empty()) now().ended |= ended;
  }

  // Rows.

  void read_row(const Words& words, size_t line) {
    if (runs_.empty()) return;
    const auto row = row_of(words);
    if (!row) return bad_rows_.see(fmt::format("line {}", line), row.error().text);
    if (row->bytes == 0) return;  // AllGather of fewer bytes than ranks
    for (size_t i = 0; i < row->outcomes.size(); i++) {
      Outcome of = row->outcomes[i];
      of.in_place = i > 0;
      of.bytes = row->bytes, of.line = line, of.ran = what_ran(row->bytes);
      of.type = row->type, of.operation = row->operation;
      if (of.time > Seconds(0)) now().outcomes.push_back(of);
    }
    last_ = *row;
  }

  // What a program that fails, or whoever ends it, says goes on in the row that was begun.
  Result<Row> row_of(const Words& words) const {
    if (words.size() != columns_.size())
      return fail(Code::invalid, "a row of {} words, where the columns are {}", words.size(),
                  columns_.size());
    Row row;
    for (size_t i = 0; i < words.size(); i++)
      if (!read_cell(columns_[i], words[i], row))
        return fail(Code::invalid, "'{}' is no {}", printable(words[i]), columns_[i]);
    return row;
  }

  template <class Number>
  static bool read_number(std::string_view word, Number& number) {
    const auto read = number_of<Number>(word);
    if (!read || !std::isfinite(static_cast<double>(*read)) || *read < 0) return false;
    number = *read;
    return true;
  }

  // False: it cannot be read.
  static bool read_cell(const std::string& column, std::string_view word, Row& row) {
    if (column == "size") return read_number(word, row.bytes);
    if (column == "count") return read_number(word, row.count);
    if (column == "type") row.type = word;
    if (column == "redop") row.operation = word;
    if (column == "root") row.has_root = number_of<uint32_t>(word).has_value();
    const bool nothing = word == "N/A";
    if (column == "time" || column == "cputime") {
      double time = 0;
      if (!nothing && !(read_number(word, time) && time > 0)) return false;
      row.outcomes.push_back({.time = microseconds(time)});
    }
    if (nothing || row.outcomes.empty()) return true;
    if (column == "algbw") return read_number(word, row.algorithm_rate);
    if (column == "busbw") return read_number(word, row.bus_rate);
    return column != "#wrong" || read_number(word, row.outcomes.back().wrong);
  }

  std::optional<NcclPair> what_ran(uint64_t bytes) const {
    const auto found = tuned_.find(bytes);
    return found == tuned_.end() ? std::nullopt : std::optional(found->second);
  }

  // NCCL's log.

  void heed(std::string_view text) {
    MeasuredRun& run = now();
    if (const auto variable = variable_told(text); variable && NcclLimits::heeds(variable->name)) {
      const Status set = run.limits.set(variable->name, variable->value);
      if (!set) mistake(line_, set.error().text);
    }
    if (const auto version = version_told(text)) run.version = version;
    if (const auto nodes = nodes_told(text)) run.nodes = *nodes;
    if (const auto tuner = tuner_told(text)) run.tuner = *tuner;
    if (text.find(" [Symmetric]: ") != text.npos) heed_option(run, 'R', 2);
    if (const auto tuned = tuned_told(text)) note(*tuned);
  }

  // Sizes here are of the whole buffer, as in the rows.
  void note(const NcclTuned& tuned) {
    if (tuned.collective) called_ = *tuned.collective;
    const bool shares = tuned.collective && has_shares(*tuned.collective);
    const uint64_t ranks = most_rank_ + uint64_t{1};
    tuned_[tuned.bytes * (tuned.of_a_rank && shares ? ranks : 1)] = tuned.pair;
  }

  // The end of a run.

  void finish() {
    if (!runs_.empty()) {
      MeasuredRun& run = runs_.back();
      run.gpus_per_process = gpus_of_process_;
      devices_.describe(1, run);
      bad_rows_.tell(run);
      run.collective = run.program.empty() ? deduced(run) : collective_of_program(run.program);
      if (run.program.empty() && !run.collective)
        run.collective = collective_of_program(run.program = program_told(told_));
      heed_rates(run);
    }
    devices_ = {}, most_rank_ = 0, columns_.clear(), tuned_.clear(), begun_.clear();
    called_.reset(), last_ = {}, gpus_of_process_ = 1, bad_rows_ = Unreadable("row");
  }

  // Bus bandwidth is algorithm bandwidth times what the number of ranks makes it; both are told to
  // a hundredth.
  void heed_rates(MeasuredRun& run) const {
    const double algorithm = last_.algorithm_rate, bus = last_.bus_rate;
    if (!run.collective || run.ranks < 2 || algorithm <= 0 || bus <= 0) return;
    const double share = 1 - 1.0 / run.ranks, ratio = bus / algorithm;
    const double expected = *run.collective == Collective::all_reduce ? 2 * share
                            : has_shares(*run.collective)             ? share
                                                                      : 1;
    if (std::abs(ratio - expected) > 1e-3 + ratio * 0.01 * (1 / algorithm + 1 / bus))
      run.leave_out(fmt::format(
          "its busbw is {:.3f} times its algbw, and {:.3f} times for the {} ranks that it tells of",
          ratio, expected, run.ranks));
  }

  // Before June 2025 the programs did not say their names. By the shares of the ranks, roots and
  // what bus bandwidth is to algorithm bandwidth; AllGather and AlltoAll look alike.
  std::optional<Collective> deduced(const MeasuredRun& run) const {
    if (called_) return called_;
    const auto type =
        std::ranges::find(kTypes, last_.type, [](const auto& of) { return of.first; });
    if (type == std::end(kTypes) || last_.count == 0) return std::nullopt;
    const bool whole = last_.bytes == last_.count * type->second;
    const bool adds_up = !last_.operation.empty() && last_.operation != "none";
    if (whole && last_.has_root) return adds_up ? Collective::reduce : Collective::broadcast;
    if (!whole && adds_up) return Collective::reduce_scatter;
    const double ratio = last_.bus_rate / last_.algorithm_rate;
    const bool twice = run.ranks > 2 && std::abs(ratio - 2 + 2.0 / run.ranks) < 0.1;
    return whole && adds_up && twice ? std::optional(Collective::all_reduce) : std::nullopt;
  }

  const std::string& file_;
  const ToldOfLog& told_;
  Status status_;
  size_t line_ = 0;
  std::vector<MeasuredRun> runs_;
  MeasuredRun early_;  // what is told before the first run
  bool fresh_ = false;
  std::vector<std::string> mentioned_;  // a program and its options, by somebody
  size_t prefix_words_ = 0;
  std::map<std::string, Begun> begun_;

  // Of the run that is being read.
  NcclTestsDevices devices_;
  uint32_t most_rank_ = 0;
  std::set<std::string> hosts_;
  uint32_t gpus_of_process_ = 1;
  std::vector<std::string> columns_;  // none: not in its table
  std::map<uint64_t, NcclPair> tuned_;
  std::optional<Collective> called_;  // by NCCL's log
  Row last_;                          // that could be read
  Unreadable bad_rows_{"row"};
};

}  // namespace

Result<std::vector<MeasuredRun>> read_nccl_tests(std::string_view text, const std::string& file,
                                                 const ToldOfLog& told) {
  return TextReader(file, told).read(text);
}

}  // namespace crosstie
