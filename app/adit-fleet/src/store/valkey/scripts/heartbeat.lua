-- Records the report of a node. KEYS: report, nodes, nid. ARGV: number, seconds for which it counts, report, record of a
-- node that has none. Answers with the previous report.
local previous = redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[2], 'GET')
if not previous and redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
  if tonumber(redis.call('GET', KEYS[3]) or '0') < tonumber(ARGV[1]) then redis.call('SET', KEYS[3], ARGV[1]) end
end
return previous
