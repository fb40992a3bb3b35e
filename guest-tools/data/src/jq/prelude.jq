# Filters of jq that jaq does not have, or has with other results. Those of jq 1.8 are the model.

# Paths
def del(f): delpaths([path(f)]);
def __assign(paths; $value): reduce path(paths) as $path (.; setpath($path; $value));
def to_entries: [keys_unsorted[] as $key | { $key, value: .[$key] }];
def from_entries: reduce .[] as $entry ({}; . + {
  ($entry | if type != "object" then .
    else first((.key, .k, .name, .Name, .K, .Key) | values) // (.key | tojson) end
    | if type == "string" then . else tojson end):
  ($entry | if type != "object" then null
    elif has("value") then .value elif has("v") then .v else .Value // .V end)
});
def with_entries(f): to_entries | map(f) | from_entries;
def pick(f): . as $in | reduce path(f) as $path (null; setpath($path; $in | getpath($path)));
def paths: path(..) | select(. != []);
def paths(f): path(.. | select(f)) | select(. != []);
def leaf_paths: paths(scalars);
def walk(f):
  def rec: (if isobject or isarray then map_values(rec) else . end) | f;
  rec;

# Streams
def tostream:
  path(def rec: (.[]? | rec), .; rec) as $path
  | getpath($path)
  | reduce path(.[]?) as $last ([$path, .]; [$path + $last]);
def fromstream(events): { value: null, is_done: false } as $start
  | foreach events as $event ($start;
      if .is_done then $start end
      | if ($event | length) == 2
        then .is_done = ($event[0] == []) | setpath(["value"] + $event[0]; $event[1])
        else .is_done = ($event[0] | length == 1) end;
      if .is_done then .value else empty end);
def truncate_stream(events): . as $depth | null | events
  | if (.[0] | length) > $depth then .[0] |= .[$depth:] else empty end;

# Tables
def INDEX(rows; f): reduce rows as $row ({}; .[$row | f | tostring] = $row);
def INDEX(f): INDEX(.[]; f);
def IN(values): any(values == .; .);
def IN(f; values): any(f == values; .);
def JOIN($index; f): [.[] | [., $index[f]]];
def JOIN($index; rows; f): rows | [., $index[f]];
def JOIN($index; rows; f; g): rows | [., $index[f]] | g;
def toarray: if isarray then . else [.] end;
def nth($n; f):
  if $n < 0 then error("nth doesn't support negative indices") else first(skip($n; f)) end;
def @base64d: tostring | . + ["", "", "==", "="][length % 4] | decode_base64;
def combinations:
  if length == 0 then [] else .[0][] as $first | (.[1:] | combinations) as $rest | [$first] + $rest end;
def combinations(n): . as $items | [range(n) | $items] | combinations;
def transpose: [range(0; map(length) | max // 0) as $i | [.[][$i]]];
def flatten($depth):
  if $depth < 0 then error("flatten depth must not be negative")
  else
    def rec($depth): reduce .[] as $x ([];
      if ($x | isarray) and $depth > 0 then . + ($x | rec($depth - 1)) else . + [$x] end);
    rec($depth)
  end;
def add(f): reduce f as $x (null; . + $x);
def join($separator): reduce .[] as $x (null;
    (if . == null then "" else . + $separator end)
    + ($x | if . == null then "" elif isboolean or isnumber then tostring else . end)
  ) // "";
def have_literal_numbers: true;
def have_decnum: true;
def halt_error: error;
def halt_error($code): error;
def input_line_number: $__line;
def input_filename: $__file;
def get_search_list: [];

# Texts
def ascii: if isnumber and . >= 0 and . <= 127 then [floor] | implode
  else error("ascii takes a whole number from 0 to 127") end;
def ltrimstr($prefix):
  if isstring and ($prefix | isstring) and startswith($prefix) then .[$prefix | length:] end;
def rtrimstr($suffix):
  if isstring and ($suffix | isstring) and endswith($suffix)
  then .[:length - ($suffix | length)] end;
def trimstr($text): ltrimstr($text) | rtrimstr($text);
def index($text): indices($text) | .[0];
def rindex($text): indices($text) | .[-1:][0];
def __cell(string):
  if isstring then string
  elif . == null then ""
  elif isarray or isobject then error("\(type) (\(.)) is not valid in a row of CSV or TSV")
  else tostring end;
def __row(string; $separator):
  if isarray then map(__cell(string)) | join($separator)
  else error("\(type) (\(.)) cannot be a row of CSV or TSV, only an array can") end;
def @csv: __row("\"" + (split("\"") | join("\"\"")) + "\""; ",");
def @tsv: __row(__escape_tsv; "\t");
def @base32: tostring | __base32;
def @base32d: tostring | __base32d;
def @html: if isarray then map(tostring | escape_html) | join(" ") else tostring | escape_html end;

# Regular expressions
def __flags: if . == null then "" elif isstring then . else error("\(.) is not a string of flags") end;
def __captures: map(select(.name) | { (.name): .string }) | add // {};
def match($re; $flags): . as $in
  | matches($re; $flags | __flags)[] | .[0] + { captures: .[1:] };
def match($re):
  if $re | isarray then match($re[0]; $re[1]) else match($re; null) end;
def test($re; $flags): isempty(matches($re; $flags | __flags)[]) | not;
def test($re):
  if $re | isarray then test($re[0]; $re[1]) else test($re; null) end;
def capture($re; $flags): matches($re; $flags | __flags)[] | .[1:] | __captures;
def capture($re):
  if $re | isarray then capture($re[0]; $re[1]) else capture($re; null) end;
def scan($re; $flags): matches($re; "g" + ($flags | __flags))[]
  | if length > 1 then map(.string)[1:] else .[0].string end;
def scan($re): scan($re; null);
def split($re; $flags): split_($re; "g" + ($flags | __flags));
def splits($re; $flags): split($re; $flags)[];
def splits($re): splits($re; null);
def sub($re; f; $flags): . as $in
  | split_matches($re; $flags | __flags) as $parts
  | (reduce range(1; $parts | length; 2) as $i ([];
        [$parts[$i][1:] | __captures | f] as $new
        | reduce range(0; $new | length) as $j (.; .[$j] += $parts[$i - 1] + $new[$j]))
      | .[] + $parts[-1])
    // $in;
def sub($re; f): sub($re; f; null);
def gsub($re; f; $flags): sub($re; f; "g" + ($flags | __flags));
def gsub($re; f): gsub($re; f; null);

# Dates
def dateadd(unit; $n): . + $n;
def datesub(unit; $n): . - $n;
def date: todate;
