-- Replaces the record of a node. KEYS: nodes. ARGV: number, name, record.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return {'gone'} end
local all = redis.call('HGETALL', KEYS[1])
for f = 1, #all, 2 do
  if all[f] ~= ARGV[1] and cjson.decode(all[f + 1]).name == ARGV[2] then return {'taken'} end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return {'ok'}
