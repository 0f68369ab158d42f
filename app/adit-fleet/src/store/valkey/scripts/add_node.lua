-- Assigns a number to a node. KEYS: nid, nodes. ARGV: name, record.
for _, record in ipairs(redis.call('HVALS', KEYS[2])) do
  if cjson.decode(record).name == ARGV[1] then return {'taken'} end
end
local id = redis.call('INCR', KEYS[1])
redis.call('HSET', KEYS[2], id, ARGV[2])
return {'ok', id}
