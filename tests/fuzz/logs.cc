// SPDX-License-Identifier: Apache-2.0
// Logs of nccl-tests and of outcomes: whatever is read has sizes and times above 0.
#include "cost/logs.h"
#include "target.h"

using namespace crosstie;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Logs logs;
  const Status added = logs.add(fuzz::text_of(data, size), "log");
  PROMISE(added || !added.error().text.empty());
  for (const MeasuredRun& run : logs.runs())
    for (const Outcome& of : run.outcomes) PROMISE(of.bytes > 0 && of.time > Seconds(0));
  return 0;
}
